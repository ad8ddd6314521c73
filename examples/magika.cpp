// What type is a file? Magika's model answers, compiled by Weft.
//
//   weft-magika magika.onnx [FILE ...]
//
// Labels and thresholds come from the model's magika.config.min.json, which lies beside it. The model and the recipe
// from bytes to input are those of Google's magika (Apache-2.0).
#include <weft/weft.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

constexpr int kPad = 256;            // "no byte here"
constexpr std::size_t kBlock = 4096;  // what is looked at, at either end
constexpr std::size_t kKeep = 1024;   // what of it the model sees
constexpr std::size_t kLeast = 8;     // with fewer bytes the model is not asked

struct Labels {
  std::vector<std::string> names;
  std::map<std::string, double> thresholds;
  std::map<std::string, std::string> overwrite;

  explicit Labels(const std::string& path) {
    const auto json = nlohmann::json::parse(std::ifstream(path));
    names = json.at("target_labels_space").get<std::vector<std::string>>();
    thresholds = json.at("thresholds").get<std::map<std::string, double>>();
    overwrite = json.at("overwrite_map").get<std::map<std::string, std::string>>();
  }
};

struct Sample {
  std::string name;
  Bytes bytes;
};

struct Answer {
  std::string label;
  double confidence = 1;
  bool low = false;
};

bool is_blank(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_utf8(const unsigned char* p, const unsigned char* end) {
  while (p < end) {
    const unsigned char lead = *p++;
    const int more = lead < 0x80 ? 0 : (lead >> 5) == 6 ? 1 : (lead >> 4) == 14 ? 2 : (lead >> 3) == 30 ? 3 : -1;
    if (more < 0 || end - p < more || lead == 0xc0 || lead == 0xc1 || lead > 0xf4) return false;
    if (more == 2 && ((lead == 0xe0 && *p < 0xa0) || (lead == 0xed && *p > 0x9f))) return false;
    if (more == 3 && ((lead == 0xf0 && *p < 0x90) || (lead == 0xf4 && *p > 0x8f))) return false;
    for (int k = 0; k < more; ++k) {
      if ((*p++ >> 6) != 2) return false;
    }
  }
  return true;
}

// 1024 numbers from the head of the file, then 1024 from its tail.
std::vector<std::int32_t> features(const Bytes& file) {
  const std::size_t block = std::min(kBlock, file.size());
  std::vector<std::int32_t> input(2 * kKeep, kPad);
  auto head = std::find_if_not(file.begin(), file.begin() + block, is_blank);
  std::copy_n(head, std::min<std::size_t>(kKeep, file.begin() + block - head), input.begin());
  auto tail_end = std::find_if_not(file.rbegin(), file.rbegin() + block, is_blank).base();
  const auto tail = std::min<std::size_t>(kKeep, tail_end - (file.end() - block));
  std::copy_n(tail_end - tail, tail, input.end() - tail);
  return input;
}

// Files that are too short for the model.
std::optional<Answer> by_rule(const Bytes& file, const std::vector<std::int32_t>& input) {
  if (file.empty()) return Answer{"empty"};
  if (file.size() >= kLeast && input[kLeast - 1] != kPad) return std::nullopt;
  return Answer{is_utf8(file.data(), file.data() + std::min(kBlock, file.size())) ? "txt" : "unknown"};
}

Answer read_answer(const weft::Tensor& probabilities, const Labels& labels) {
  const float* p = probabilities.as<float>();
  const std::size_t best = std::max_element(p, p + probabilities.size()) - p;
  Answer answer{labels.names.at(best), p[best]};
  const auto threshold = labels.thresholds.find(answer.label);
  answer.low = answer.confidence < (threshold == labels.thresholds.end() ? 0.5 : threshold->second);
  if (const auto other = labels.overwrite.find(answer.label); other != labels.overwrite.end()) answer.label = other->second;
  return answer;
}

Bytes text(const std::string& s) { return {s.begin(), s.end()}; }

Bytes read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A second of a 440 Hz tone.
Bytes wave() {
  Bytes b = text("RIFF");
  const auto put = [&b](std::uint32_t value, int bytes) {
    for (int k = 0; k < bytes; ++k) b.push_back(value >> (8 * k));
  };
  const auto word = [&b](const char* s) { b.insert(b.end(), s, s + 4); };
  put(36 + 16000, 4), word("WAVE"), word("fmt "), put(16, 4), put(1, 2), put(1, 2), put(8000, 4), put(16000, 4);
  put(2, 2), put(16, 2), word("data"), put(16000, 4);
  for (int t = 0; t < 8000; ++t) put(static_cast<std::uint16_t>(std::lround(9000 * std::sin(t * 0.3456))), 2);
  return b;
}

// A grey gradient.
Bytes bitmap() {
  const unsigned char header[] = {'B', 'M', 0x36, 0x30, 0, 0, 0, 0, 0, 0, 0x36, 0, 0, 0, 40, 0, 0,  0,
                                  64,  0,   0,    0,    64, 0, 0, 0, 1, 0, 24,  0, 0, 0, 0, 0,  0, 0x30,
                                  0,   0,   0x13, 0x0b, 0, 0, 0x13, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  Bytes b(std::begin(header), std::end(header));
  for (int i = 0; i < 64 * 64 * 3; ++i) b.push_back(i / 3 / 64 * 4);
  return b;
}

std::vector<Sample> default_samples() {
  std::vector<Sample> samples;
  for (const char* name : {"CMakeLists.txt", "Makefile", "src/base/dim.cpp", "zoo/zoo.py", "zoo/wheels.json",
                           "deps/install.sh", "docs/semantics.md"}) {
    samples.push_back({name, read_file(std::string(WEFT_SOURCE_DIR "/") + name)});
  }
  samples.push_back({"this program", read_file("/proc/self/exe")});
  samples.push_back({"a tone, made here", wave()});
  samples.push_back({"a picture, made here", bitmap()});
  samples.push_back({"a page, made here", text("<!DOCTYPE html>\n<html><head><title>Weft</title></head>\n"
                                               "<body><h1>Weft</h1><p>Hello, <b>world</b>.</p></body></html>\n")});
  std::string table = "id,name,price,city\n";
  for (int k = 0; k < 40; ++k) table += std::to_string(k) + ",item " + std::to_string(k * 7) + ",19.99,Berlin\n";
  samples.push_back({"a table, made here", text(table)});
  samples.push_back({"one word, made here", text("weft\n")});
  return samples;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void classify(const std::string& path, const std::vector<Sample>& samples) {
  const Labels labels(path.substr(0, path.rfind('.')) + ".config.min.json");
  const weft::Model model = weft::load(path).value();
  weft::CompileOptions fresh;
  fresh.cache = false;
  const weft::Program program = weft::compile(model, fresh).value();
  weft::CompileOptions reference;
  reference.target = "ref";
  const weft::Program interpreter = weft::compile(model, reference).value();

  std::printf("Magika, a network that tells the type of a file from its bytes, says of these files:\n\n"
              "%-24s %-12s %s\n", "file", "type", "confidence");
  double worst = 0;
  std::vector<double> times;
  for (const Sample& sample : samples) {
    const std::vector<std::int32_t> input = features(sample.bytes);
    Answer answer;
    if (const auto simple = by_rule(sample.bytes, input)) {
      answer = *simple;
    } else {
      const auto tensor = weft::Tensor::view(weft::DType::I32, {1, 2 * kKeep}, input.data(), nullptr);
      const weft::Tensor got = program.run({tensor}).value()[0];
      const auto start = std::chrono::steady_clock::now();
      program.run({tensor}).value();
      times.push_back(seconds_since(start));
      const weft::Tensor want = interpreter.run({tensor}).value()[0];
      for (std::int64_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(got.f64(i) - want.f64(i)));
      answer = read_answer(got, labels);
    }
    std::printf("%-24s %-12s %8.1f %%%s\n", sample.name.c_str(), answer.label.c_str(), 100 * answer.confidence,
                answer.low ? "  (not sure)" : "");
  }
  std::sort(times.begin(), times.end());
  std::printf("\ncompiled in %.0f ms (%d kernels), run in %.0f µs, checked against the interpreter: max error %.1e\n",
              program.stats().compile_ms, program.stats().kernels, times.empty() ? 0 : times[times.size() / 2] * 1e6, worst);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: weft-magika magika.onnx [FILE ...]\n");
    return 2;
  }
  try {
    std::vector<Sample> samples;
    for (int i = 2; i < argc; ++i) samples.push_back({argv[i], read_file(argv[i])});
    classify(argv[1], samples.empty() ? default_samples() : samples);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "weft-magika: %s\n", e.what());
    return 1;
  }
}
