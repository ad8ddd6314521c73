"""Holds the cases that `weft diff` writes against onnx.checker and the data that ONNX Runtime makes of them.
  reproducer.py WEFT CASES"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime


def check(weft, model):
    with tempfile.TemporaryDirectory() as folder:
        part = pathlib.Path(folder, "part")
        command = [weft, "diff", str(model), "--rtol", "0", "--atol", "0", "--output-dir", str(part)]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 1:
            sys.exit(f"{model}: weft diff found no difference")
        onnx.checker.check_model(onnx.load(part / "model.onnx"), full_check=True)
        data = lambda kind: [onnx.numpy_helper.to_array(onnx.load_tensor(p)) for p in
                             sorted((part / "test_data_set_0").glob(f"{kind}_*.pb"))]
        session = onnxruntime.InferenceSession(str(part / "model.onnx"), providers=["CPUExecutionProvider"])
        feeds = {i.name: x for i, x in zip(session.get_inputs(), data("input"))}
        for got, want in zip(session.run(None, feeds), data("output")):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


for name in ["matmul_broadcast_and_vectors", "conv_3d_depthwise", "softmax_axis1_opset9_flattens"]:
    check(sys.argv[1], pathlib.Path(sys.argv[2], name, "model.onnx"))
