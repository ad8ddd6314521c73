#!/usr/bin/env python3
"""Makes the small models that tests run, damage and share: python make.py (needs onnx and numpy)."""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

rng = np.random.default_rng(1)


def weights(**shapes):
    return [nh.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in shapes.items()]


def constants(**values):
    return [nh.from_array(np.array(v, np.int64), n) for n, v in values.items()]


def save(name, nodes, inputs, outputs, initializers, functions=(), opsets=(("", 18),), folder="."):
    graph = h.make_graph(nodes, name, inputs, outputs, initializers)
    model = h.make_model(graph, opset_imports=[h.make_opsetid(d, v) for d, v in opsets], functions=list(functions), ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, pathlib.Path(__file__).parent / folder / f"{name}.onnx")


def info(name, shape, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


n = h.make_node


def mlp():
    nodes = [n("Gemm", ["x", "w1", "b1"], ["h"], transB=1, alpha=0.5), n("Relu", ["h"], ["r"], name="act"),
             n("LayerNormalization", ["r", "g"], ["l"], axis=-1), n("MatMul", ["l", "w2"], ["m"]),
             n("Softmax", ["m"], ["p"], axis=-1), n("ArgMax", ["p"], ["i"], axis=1, keepdims=0),
             n("TopK", ["p", "k"], ["tv", "ti"])]
    save("mlp", nodes, [info("x", ["batch", 6])], [info("p", ["batch", 3]), info("i", ["batch"], T.INT64), info("tv", ["batch", 2])],
         weights(w1=(5, 6), b1=(5,), g=(5,), w2=(5, 3)) + constants(k=[2]))


def attention():
    gelu = h.make_function("local", "gelu", ["a"], ["b"],
                           [n("Constant", [], ["c"], value_float=1.702), n("Mul", ["a", "c"], ["s"]), n("Sigmoid", ["s"], ["g"]), n("Mul", ["a", "g"], ["b"])],
                           [h.make_opsetid("", 18)])
    nodes = [n("Shape", ["x"], ["s"]), n("Gather", ["s", "second"], ["len"], axis=0), n("Unsqueeze", ["len", "first"], ["len1"]),
             n("Concat", ["one1", "len1", "heads"], ["to"], axis=0),
             n("MatMul", ["x", "wq"], ["q0"]), n("Reshape", ["q0", "to"], ["q1"]), n("Transpose", ["q1"], ["q"], perm=[0, 2, 1, 3]),
             n("Transpose", ["q1"], ["k"], perm=[0, 2, 3, 1]), n("MatMul", ["q", "k"], ["a"]), n("Softmax", ["a"], ["p"]),
             n("MatMul", ["p", "q"], ["o"]), n("gelu", ["o"], ["ge"], domain="local"),
             n("Conv", ["ge", "wc"], ["c"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
             n("MaxPool", ["c"], ["mp"], kernel_shape=[2, 2], strides=[1, 1], auto_pad="SAME_UPPER"),
             n("Split", ["mp"], ["s0", "s1"], axis=1, num_outputs=2), n("Where", ["cond", "s0", "s1"], ["wh"]),
             n("Pad", ["wh", "pads"], ["pd"]), n("Slice", ["pd", "from", "till"], ["sl"]),
             n("Resize", ["sl", "", "scales"], ["y"], mode="nearest")]
    save("attention", nodes, [info("x", [1, "seq", 8])], [info("y", ["o0", "o1", "o2", "o3"])],
         weights(wq=(8, 8), wc=(2, 2, 3, 3)) + constants(second=1, first=[0], one1=[1], heads=[2, 4], pads=[0, 0, 1, 1, 0, 0, 1, 0], **{"from": [0], "till": [1]})
         + [nh.from_array(np.array(True), "cond"), nh.from_array(np.array([1, 1, 2, 1], np.float32), "scales")],
         [gelu], (("", 18), ("local", 1)))


def control():
    then = h.make_graph([n("Neg", ["x"], ["t"])], "then", [], [info("t", ["seq", 3])])
    other = h.make_graph([n("CumSum", ["x", "zero"], ["e"])], "else", [], [info("e", ["seq", 3])])
    body = h.make_graph([n("Add", ["acc", "row0"], ["acc1"]), n("Identity", ["go"], ["go1"]), n("Mul", ["acc1", "acc1"], ["out"])], "body",
                        [info("it", [], T.INT64), info("go", [], T.BOOL), info("acc", [3])],
                        [info("go1", [], T.BOOL), info("acc1", [3]), info("out", [3])])
    step = h.make_graph([n("Add", ["state", "in"], ["state1"]), n("Tanh", ["state1"], ["seen"])], "step",
                        [info("state", [3]), info("in", [3])], [info("state1", [3]), info("seen", [3])])
    nodes = [n("ReduceSum", ["x"], ["sum"], keepdims=0), n("Greater", ["sum", "half"], ["cond"]),
             n("If", ["cond"], ["y"], then_branch=then, else_branch=other, name="branch"),
             n("ReduceMean", ["y", "first"], ["row0"], keepdims=0),
             n("Loop", ["trips", "", "row0"], ["last", "all"], body=body), n("Scan", ["row0", "y"], ["state_n", "scanned"], body=step, num_scan_inputs=1),
             n("Unsqueeze", ["y", "second"], ["y3"]), n("LSTM", ["y3", "w", "r"], ["h"], hidden_size=2),
             n("NonZero", ["scanned"], ["nz"]), n("Einsum", ["y", "all"], ["ein"], equation="ij,kj->ik"),
             n("ScatterND", ["all", "where", "row1"], ["sc"]), n("QuantizeLinear", ["ein", "half"], ["qu"])]
    save("control", nodes, [info("x", ["seq", 3])],
         [info("h", ["seq", 1, 1, 2]), info("nz", [2, "count"], T.INT64), info("qu", ["seq", "t"], T.UINT8), info("sc", ["t", 3]), info("state_n", [3])],
         weights(w=(1, 8, 3), r=(1, 8, 2), row1=(1, 3)) + constants(zero=0, first=[0], second=[1], trips=4, where=[[1]])
         + [nh.from_array(np.array(0.5, np.float32), "half")])


def custom_op():
    nodes = [n("Add", ["x", "x"], ["a"], name="double"), n("ScaledRelu", ["a"], ["b"], domain="test.weft", name="mine"),
             n("Neg", ["b"], ["y"])]
    save("custom_op", nodes, [info("x", ["n", 5])], [info("y", ["n", 5])], [], opsets=(("", 18), ("test.weft", 1)),
         folder="../api/tile")


mlp()
attention()
control()
custom_op()
