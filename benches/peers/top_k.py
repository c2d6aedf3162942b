"""Top-k over fp32 scores: torch, vLLM's three kernels, and DeepSelect."""
import torch

from peer import Absent, DEVICE, copies, ffi_module, library, main


def problem(case, select, dtype=torch.float32):
    """`select(scores)` gives the indices of the best."""
    rows, length, k = case["tokens"], case["entries"], case["k"]
    first = torch.randn(rows, length, device=DEVICE).to(dtype)
    scores = [first] + [first.roll(i + 1, 1) for i in range(copies(first.nbytes, 32) - 1)]

    def check():
        taken = first.float().gather(1, select(first).long().clamp(0, length - 1))
        return taken.sort(1).values, first.float().topk(k, 1).values.sort(1).values

    return [lambda s=s: select(s) for s in scores], check


def vllm(bench, case):
    """The kernels of vLLM 0.33.0 by name; the cooperative one takes up to 64 rows."""
    library("_C_stable_libtorch")
    ops, (rows, length, k) = torch.ops._C, (case["tokens"], case["entries"], case["k"])
    lengths = torch.full((rows,), length, dtype=torch.int32, device=DEVICE)
    out = torch.full((rows, k), -7, dtype=torch.int32, device=DEVICE)
    room = torch.zeros(1 << 20, dtype=torch.uint8, device=DEVICE)

    def cooperative(x):
        ops.cooperative_topk(x, lengths, out, room, k, length)
        return out

    def persistent(x):
        ops.persistent_topk(x, lengths, out, room, k, length)
        return out

    def per_row(x):
        ops.top_k_per_row_decode(x, 1, lengths, out, rows, length, 1, k)
        return out

    named = dict(cooperative=cooperative, persistent=persistent, per_row=per_row)
    for name, select in named.items():
        if name != "cooperative" or rows <= 64:
            bench.add(case, f"vLLM {name}", "", lambda: problem(case, select), 1e-6)


def deep_select(bench, case):
    """SGLang's copy, built for one width: fp32, and bf16 scores as a relaxed contract."""
    rows, k = case["tokens"], case["k"]
    hint = "build SGLang's deep_select/entry.cuh for sm_90a with tvm-ffi"
    out = torch.full((rows, k), -7, dtype=torch.int32, device=DEVICE)
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        topk = ffi_module(f"ds_{name}_{k}", hint)["topk"]

        def select(x):
            bound = (0, k, x.nbytes, -1, float("-inf"), False)
            topk(x, None, out, None, None, None, None, *bound)
            return out

        contract = "" if dtype == torch.float32 else "bf16 scores"
        bench.add(case, f"DeepSelect {name}", contract, lambda: problem(case, select, dtype), 1e-6)


def peers(bench):
    absent = {}
    for case in bench.cases("index.top_k"):
        if "blocks=none" not in case.line:
            continue
        k = case["k"]
        best = lambda x: torch.topk(x, k, 1, sorted=False).indices
        bench.add(case, "torch.topk", "", lambda: problem(case, best), 1e-6)
        for family in (vllm, deep_select):
            try:
                if family not in absent:
                    family(bench, case)
            except Absent as why:
                absent[family] = f"SKIPPED {family.__name__} of top_k: {why}"
    bench.problems += absent.values()


if __name__ == "__main__":
    main(peers)
