// Convolutions in one to three dimensions, and windows.
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

struct Convolution {
  const char* what;
  Shape x, w;
  Ints strides, dilations, base;
  Shape lo, hi;
  std::int64_t groups = 1;
  bool channels_last = false;
};

Convolution plain_2d(const char* what) {
  return {what, {2, 3, 9, 7}, {5, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
}

std::vector<Convolution> variants_2d() {
  std::vector<Convolution> all{plain_2d("3x3")};
  all.push_back(plain_2d("stride-2")), all.back().strides = {2, 2};
  all.push_back(plain_2d("dilated")), all.back().dilations = {2, 2};
  all.push_back(plain_2d("transposed")), all.back().base = {2, 3};
  all.push_back(plain_2d("cropped")), all.back().lo = {-1, 0}, all.back().hi = {0, -2};
  all.push_back(plain_2d("uneven-padding")), all.back().lo = {0, 2}, all.back().hi = {1, 0};
  all.push_back(plain_2d("groups")), all.back().x[1] = 6, all.back().w = {4, 3, 3, 3}, all.back().groups = 2;
  all.push_back(plain_2d("depthwise")), all.back().x[1] = 17, all.back().w = {17, 1, 3, 3}, all.back().groups = 17;
  all.push_back(plain_2d("1x1")), all.back().w = {33, 3, 1, 1}, all.back().lo = all.back().hi = {0, 0};
  all.push_back(plain_2d("channels-last")), all.back().x = {2, 9, 7, 3}, all.back().w = {3, 3, 3, 5}, all.back().channels_last = true;
  all.push_back(plain_2d("too-large-a-kernel")), all.back().w = {5, 3, 13, 3};
  all.push_back(plain_2d("no-images")), all.back().x[0] = 0;
  return all;
}

std::vector<Convolution> convolutions(DType t) {
  std::vector<Convolution> open{{"open-2d", {n(), 3, m() + 4, 9}, {5, 3, 3, 3}, {1, 2}, {1, 1}, {1, 1}, {1, 0}, {1, 0}},
                                {"1d", {n(), 4, m()}, {6, 4, 3}, {1}, {1}, {1}, {1}, {1}}};
  if (!is_common(t)) return open;
  std::vector<Convolution> all = variants_2d();
  all.insert(all.end(), open.begin(), open.end());
  all.push_back({"3d", {1, 2, 5, 4, 7}, {3, 2, 2, 3, 3}, {1, 2, 1}, {1, 1, 2}, {1, 1, 1}, {1, 0, 2}, {0, 1, 2}});
  return all;
}

void sweep_winograd(Op op, Cases& into) {
  for (const std::int64_t tile : {2, 4}) {
    for (const Shape& x : {Shape{n(), 8, 8, 5}, Shape{1, 8, 12, 3}}) {
      Maker make(graph::info(op).name, "f32/" + text(x) + "/tile=" + std::to_string(tile));
      const ValueId a = make.input(DType::F32, x), u = make.input(DType::F32, {(tile + 2) * (tile + 2), x[3], 7});
      const Attrs attrs = Attrs().set(Attr::Tile, tile).set(Attr::Lo, Shape{1, 1}).set(Attr::Hi, Shape{1, 1}).set(Attr::DType, DType::F32);
      make.tolerance(64, 1e-2).done(into, {make.b().node(op, {a, u}, attrs)});  // F(4x4,3x3) has factors up to 8
    }
  }
}

}  // namespace

void sweep_conv(Op op, Cases& into) {
  if (op == Op::ConvWinograd) return sweep_winograd(op, into);
  struct Kind {
    DType x, w, result;
  };
  std::vector<Kind> kinds;
  for (DType t : dtypes_of(graph::info(op).dtypes)) kinds.push_back({t, t, t});
  for (DType x : {DType::I8, DType::U8}) kinds.push_back({x, DType::I8, DType::I32});
  kinds.push_back({DType::F16, DType::F16, DType::F32});
  for (const Kind& k : kinds) {
    for (const Convolution& c : convolutions(k.x)) {
      Maker make(graph::info(op).name, std::string(name(k.x)) + "-" + name(k.result) + "/" + c.what);
      const ValueId x = make.input(k.x, c.x), w = make.input(k.w, c.w);
      Attrs attrs = Attrs().set(Attr::Strides, c.strides).set(Attr::Dilations, c.dilations).set(Attr::BaseDilations, c.base);
      attrs.set(Attr::Lo, c.lo).set(Attr::Hi, c.hi).set(Attr::Groups, c.groups).set(Attr::ChannelsLast, c.channels_last);
      attrs.set(Attr::DType, k.result);
      const double atol = 512 * eps(k.result == DType::F64 ? DType::F64 : DType::F32);
      make.tolerance(k.result == DType::F32 || k.result == DType::F64 ? 64 : 1, is_float(k.result) ? atol : 0);
      make.done(into, {make.b().node(op, {x, w}, attrs)});
    }
  }
}

void sweep_window(Op op, Cases& into) {
  struct Windows {
    const char* what;
    Shape x;
    Ints window, strides, dilations;
    Shape lo, hi;
  };
  const Windows all[] = {
      {"open", {n(), m() + 4}, {1, 3}, {1, 2}, {1, 1}, {0, 1}, {0, 1}},
      {"2d", {2, 3, 9, 7}, {1, 1, 3, 3}, {1, 1, 1, 1}, {1, 1, 1, 1}, {0, 0, 1, 1}, {0, 0, 1, 1}},
      {"stride-2", {2, 3, 9, 7}, {1, 1, 2, 2}, {1, 1, 2, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 1, 1}},
      {"dilated", {2, 3, 9, 9}, {1, 1, 3, 2}, {1, 1, 1, 1}, {1, 1, 2, 3}, {0, 0, 0, 0}, {0, 0, 0, 0}},
      {"padding-alone", {2, 3}, {1, 2}, {1, 1}, {1, 1}, {0, 3}, {0, 3}},
      {"nothing", {0, 5}, {1, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
  };
  for (DType t : dtypes_of(graph::info(op).dtypes)) {
    for (const Windows& w : all) {
      Maker make(graph::info(op).name, std::string(name(t)) + "/" + w.what);
      const ValueId x = make.input(t, w.x, Draw::Special);
      const Attrs attrs = Attrs().set(Attr::Window, w.window).set(Attr::Strides, w.strides).set(Attr::Dilations, w.dilations)
                              .set(Attr::Lo, w.lo).set(Attr::Hi, w.hi);
      make.tolerance(op == Op::WindowSum ? 2 : 0, op == Op::WindowSum ? 32 * eps(t == DType::F64 ? t : DType::F32) : 0);
      make.done(into, {make.b().node(op, {x}, attrs)});
    }
  }
}

}  // namespace weft::sweep
