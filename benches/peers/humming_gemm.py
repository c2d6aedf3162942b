"""Humming 0.1.19: MXFP4 experts and MXFP8 linears, with exact scales of 32 and relaxed ones.

Only the GEMMs: gather, SwiGLU, quantisation and combine are not in its times.
"""
import os

os.environ.setdefault("HUMMING_TEST_TUNING_SOURCE", "heuristic")

import torch  # noqa: E402  (Humming reads its settings when it is imported)

from peer import DEVICE, copies, main, package  # noqa: E402
from routing import matrix, routings  # noqa: E402

HINT = "pip install humming-kernels==0.1.19"
# Activations of 16 bits, FP8 with one scale a row, of 128, of 32.
KINDS = {"W4A16": None, "W4A8 per token": 0, "W4A8 of 128": 128, "W4A8 of 32": 32}


def build(case, group, layout, experts):
    """A runner over random weights, and the compute configuration it was made for."""
    package("humming", HINT)
    from humming import dtypes
    from humming.config import ComputeConfig, GemmType, LayerConfig
    from humming.testing.runner import KernelTestCase, KernelTestRunner

    n, k = matrix(case) if experts else (case["n"], case["k"])
    weights = dict(num_experts=case["local"], b_dtype=dtypes.float4e2m1) if experts else dict(
        num_experts=0, b_dtype=dtypes.float8e4m3, weight_scale_group_size_n=0)
    layer = LayerConfig(
        shape_n=n, shape_k=k, a_dtype=dtypes.bfloat16 if group is None else dtypes.float8e4m3,
        c_dtype=dtypes.bfloat16, bs_dtype=dtypes.float8e8m0, weight_scale_group_size=32,
        input_scale_group_size=group or 0, **weights)
    compute = ComputeConfig(gemm_type=getattr(GemmType, layout))
    test = KernelTestCase(name="bench", layer_config=layer, compute_config=compute, top_k=1)
    return KernelTestRunner(test), n, k


def problem(case, group, layout, experts):
    runner, n, k = build(case, group, layout, experts)
    from humming import ops

    draws = routings(case) if experts else [torch.zeros(case["tokens"], dtype=torch.long)]
    kernels = runner.prepare_kernels(tuple(sorted({len(rows) for rows in draws})))
    kernels = kernels[0][2] if isinstance(kernels, list) else kernels
    tensors = [runner.kernel_tensors]
    if not experts:
        clone = lambda t: t.clone() if torch.is_tensor(t) else t
        tensors += [{a: clone(b) for a, b in tensors[0].items()} for _ in range(copies(n * k) - 1)]
    calls, first = [], None
    for rows in draws:
        kernel, tuning, _ = kernels[len(rows)][0]
        x = torch.randn(len(rows), k, device=DEVICE, dtype=torch.bfloat16) / k**0.25
        expert = rows.view(-1, 1).int().to(DEVICE) if experts else None
        given, launch, order = runner._prepare_problem(len(rows), x, expert, tuning["block_shape"][0])
        plain, inputs, scale, *second = runner.prepare_inputs(given)
        launch = dict(launch, inputs=inputs, input_scale=scale)
        if second and second[0] is not None:
            launch["input_scale_2"] = second[0]
        height = inputs.shape[0] if layout == "GROUPED_CONTIGUOUS" else len(rows)
        out = torch.full((height, n), float("nan"), device=DEVICE, dtype=torch.bfloat16)
        locks = torch.zeros(2048, dtype=torch.int32, device=DEVICE)
        fixed = dict(launch, outputs=out, locks=locks, top_k=1, configs=kernel)
        calls += [lambda given=dict(fixed, **t): ops.launch_kernel(**given) for t in tensors]
        first = first or (plain, expert, order)

    def check():
        plain, expert, order = first
        calls[0]()
        y = calls[0]()
        if experts:
            return y[order], runner.make_reference(plain, expert, order)
        some = slice(0, 256)
        return y[some], plain[some] @ runner.weight_ref.float().t()

    return calls, check


def peers(bench):
    package("humming", HINT)
    for operator in ("moe.expert_up", "moe.expert_down"):
        for case in bench.cases(operator, local=48):
            for kind, group in KINDS.items():
                contract = {None: "bf16 activations; ", 32: ""}.get(group, "relaxed scales; ")
                for layout in ("INDEXED", "GROUPED_CONTIGUOUS"):
                    bench.add(case, f"Humming {kind}, {layout.lower()}", contract + "GEMM alone",
                              lambda: problem(case, group, layout, True))
            torch.cuda.empty_cache()
    for case in bench.cases("gemm.mxfp8"):
        for kind, group in (("W8A16", None), ("W8A8 of 32", 32)):
            contract = "bf16 activations" if group is None else "weight scales 1x32"
            bench.add(case, f"Humming {kind}", contract, lambda: problem(case, group, "DENSE", False))


if __name__ == "__main__":
    main(peers)
