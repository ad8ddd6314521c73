#!/usr/bin/env python3
"""Makes cases of operators as they were before opset 7, in the layout of ONNX's own suite: python make.py (needs onnx, numpy).
The expected values are NumPy's."""
import pathlib

import numpy as np
import onnx
from onnx import helper as h, numpy_helper as nh

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(3)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def case(name, opset, op, inputs, outputs, **attributes):
    info = lambda n, v: h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(v.dtype), v.shape)
    ins, outs = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(len(outputs))]
    graph = h.make_graph([h.make_node(op, ins, outs, **attributes)], name, [info(n, v) for n, v in zip(ins, inputs)],
                         [info(n, v) for n, v in zip(outs, outputs)])
    data = here / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=3), here / name / "model.onnx")
    for kind, names, values in (("input", ins, inputs), ("output", outs, outputs)):
        for i, (n, v) in enumerate(zip(names, values)):
            (data / f"{kind}_{i}.pb").write_bytes(nh.from_array(v, n).SerializeToString())


a, b, c = f32(2, 3, 4, 5), f32(3, 4), f32(5)
case("add_axis_opset1", 1, "Add", [a, b], [a + b[None, :, :, None]], broadcast=1, axis=1, consumed_inputs=[0, 0])
case("mul_suffix_opset6", 6, "Mul", [a, c], [a * c], broadcast=1)
case("div_negative_axis_opset6", 6, "Div", [a, c + 3], [a / (c + 3)], broadcast=1, axis=-1)
case("less_axis_opset1", 1, "Less", [a, b], [a < b[None, :, :, None]], broadcast=1, axis=1)
case("pow_scalar_opset1", 1, "Pow", [np.abs(a), np.array(1.5, np.float32)], [np.abs(a) ** np.float32(1.5)], broadcast=1)
case("prelu_channels_opset6", 6, "PRelu", [a, b[:, 0].copy()], [np.where(a < 0, a * b[:, 0][None, :, None, None], a)])
case("prelu_shared_opset1", 1, "PRelu", [a, c[:1].copy()], [np.where(a < 0, a * c[0], a)], consumed_inputs=[0, 0])
case("cast_by_name_opset1", 1, "Cast", [a * 10], [(a * 10).astype(np.int32)], to="INT32")
case("reshape_attribute_opset1", 1, "Reshape", [a], [a.reshape(2, 12, 5)], shape=[0, -1, 5], consumed_inputs=[0])
case("pad_paddings_opset1", 1, "Pad", [a[0, 0]], [np.pad(a[0, 0], ((1, 0), (2, 3)), constant_values=1.5)],
     paddings=[1, 2, 0, 3], mode="constant", value=1.5)
case("tile_axis_opset1", 1, "Tile", [a[0, 0], np.array(3, np.int64), np.array(1, np.int64)], [np.tile(a[0, 0], (1, 3))])
case("concat_default_axis_opset1", 1, "Concat", [a, a + 1], [np.concatenate([a, a + 1], 1)])
case("selu_defaults_opset1", 1, "Selu", [a], [np.float32(1.0507) * np.where(a > 0, a, np.float32(1.6732) * (np.exp(a) - 1))])
x, w, s = f32(3, 4), f32(4, 2), f32(2)
case("gemm_broadcast_opset6", 6, "Gemm", [x, w, s], [0.5 * x @ w + 2 * s], alpha=0.5, beta=2.0, broadcast=1)
mean, variance = f32(3), np.abs(f32(3)) + 1
shape = (1, 3, 1, 1)
scale, shift = f32(3), f32(3)
case("batch_norm_is_test_opset1", 1, "BatchNormalization", [a, scale, shift, mean, variance],
     [(a - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-3) * scale.reshape(shape) + shift.reshape(shape)],
     is_test=1, epsilon=1e-3, consumed_inputs=[0, 0, 0, 1, 1])
case("dropout_is_test_opset6", 6, "Dropout", [a], [a], is_test=1, ratio=0.3)
case("upsample_scales_opset1", 1, "Upsample", [a], [a.repeat(2, 2).repeat(3, 3)], height_scale=2.0, width_scale=3.0, mode="nearest")
case("split_opset1", 1, "Split", [a], [a[:, :, :1], a[:, :, 1:]], axis=2, split=[1, 3])
