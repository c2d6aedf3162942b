"""vLLM's gate: softplus, square root, bias, top-k and normalisation, without the router's GEMM."""
import torch

from peer import DEVICE, copies, library, main


def problem(case):
    experts, top_k, tokens, factor = case["experts"], case["top_k"], case["tokens"], 1.5
    logits = torch.randn(tokens, experts, device=DEVICE)
    inputs = [logits] + [logits.clone() for _ in range(copies(logits.nbytes, 32) - 1)]
    bias = torch.rand(experts, device=DEVICE) * 0.1
    weight = torch.empty(tokens, top_k, device=DEVICE)
    ids, scratch = (torch.empty(tokens, top_k, dtype=torch.int32, device=DEVICE) for _ in range(2))

    def call(x):
        torch.ops._moe_C.topk_softplus_sqrt(weight, ids, scratch, x, True, factor, bias, None, None,
                                            None)

    def check():
        call(logits)
        score = torch.nn.functional.softplus(logits).sqrt()
        chosen = (score + bias).topk(top_k, 1).indices
        assert torch.equal(ids.long().sort(1).values, chosen.sort(1).values), "other experts"
        wanted = score.gather(1, chosen)
        wanted = wanted / wanted.sum(1, keepdim=True) * factor
        return weight.sort(1).values, wanted.sort(1).values

    return [lambda x=x: call(x) for x in inputs], check


def peers(bench):
    library("_moe_C_stable_libtorch")
    for case in bench.cases("moe.route"):
        bench.add(case, "vLLM topk_softplus_sqrt", "", lambda: problem(case), 1e-5)


if __name__ == "__main__":
    main(peers)
