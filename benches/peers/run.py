"""Our operators beside public kernels on one NVIDIA board, in one run.

    python3 benches/peers/run.py --board target/release/board [--only dense,top_k] [--json FILE]

Runs `board` on the operators that peers have something for, then every peer file on the same
shapes, each in a process of its own, one after the other. Prints a table with every time, its ratio
to our best row and its share of the floor, then what has no figure and why. torch alone is needed;
README.md tells where the other peers come from. TANDEM_PEERS names the folder they were put into.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Which peer files look at which operators.
GROUPS = {
    "dense": (["gemm.mxfp8"], ["torch_cublas", "deepgemm", "sglang_triton", "humming_gemm"]),
    "bf16": (["gemm.bf16", "gemm.f32"], ["torch_cublas"]),
    "moe": (["moe.expert_up", "moe.expert_down"], ["humming_gemm", "marlin", "deepgemm"]),
    "attention": (["attn.sparse"], ["flashmla", "q8kv8"]),
    "scores": (["index.scores"], ["deepgemm"]),
    "top_k": (["index.top_k"], ["top_k"]),
    "router": (["moe.route"], ["vllm_gate"]),
    "mhc": (["mhc.mixes"], ["deepgemm"]),
}


def ours(arguments, group, operators, work):
    """Every figure of our own for these operators, the board, and what there is none of."""
    cases, board, problems = [], None, []
    path = os.path.join(work, "ours.json")
    parts = [part.removeprefix(group + ":") for part in arguments.part
             if part.split(":")[0] not in GROUPS or part.startswith(group + ":")]
    for operator in operators:
        command = [arguments.board, operator, *parts, "--device", "cuda", "--json", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if arguments.verbose:
            print(done.stdout)
        if not os.path.exists(path):
            problems.append(dict(what=f"tandem {operator}", why=last_line(done)))
            continue
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        os.remove(path)
        board = report["board"]
        mine = [case for case in report["cases"] if case["operator"] == operator]
        print(f"ours: {operator}: {len(mine)} figures on {board}", flush=True)
        cases += mine
        problems += [dict(what=f"tandem {operator}{left['case']} {left['row'] or ''}",
                          why=left["reason"])
                     for left in report["skipped"] if left["operator"] == operator]
        problems += [dict(what=f"tandem {case['row']} {' '.join(key(case))}", why=case["differs"])
                     for case in mine if case["differs"]]
    return cases, board, problems


def last_line(done):
    """Why a process failed."""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def peer(name, cases, work, limit_s):
    """Figures and problems of one peer file."""
    source, result = (os.path.join(work, f"{name}.{kind}.json") for kind in ("in", "out"))
    with open(source, "w", encoding="utf-8") as file:
        json.dump(dict(cases=cases), file)
    command = [sys.executable, os.path.join(HERE, f"{name}.py"), source, result]
    report = dict(results=[], problems=[])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
        failure = [dict(what=name, why=last_line(done))] if done.returncode else []
    except subprocess.TimeoutExpired:
        failure = [dict(what=name, why=f"took more than {limit_s:.0f} s")]
    if os.path.exists(result):
        with open(result, encoding="utf-8") as file:
            report = json.load(file)
        os.remove(result)
    return report["results"], report["problems"] + failure


def table(cases, results):
    """One block a shape: our rows, then the peers, fastest first."""
    shapes = {}
    for case in cases:
        shapes.setdefault(key(case), ([], []))[0].append(case)
    for result in results:
        shapes[key(result)][1].append(result)
    for (operator, descriptor, extents), (mine, others) in shapes.items():
        right = [case for case in mine if not case["differs"]] or mine
        best, floor = min(case["us"] for case in right), mine[0]["floor_us"]
        known = f", floor {floor:.2f} us ({mine[0]['bound']})" if floor else ""
        print(f"{operator}{descriptor} {extents}{known}")
        rows = [(c["us"], f"tandem {c['row']}", "" if not c["differs"] else "WRONG") for c in mine]
        rows += [(r["us"], r["peer"], r["contract"]) for r in others]
        for us, name, note in sorted(rows):
            share = f"{floor / us:6.2f}" if floor else "     -"
            print(f"  {us:10.2f} us  {us / best:7.3f} x ours {share} of floor  {name}"
                  + (f" ({note})" if note else ""))


def listed(problems):
    """What has no figure, a line for each reason."""
    reasons = {}
    for problem in problems:
        reasons.setdefault(problem["why"], []).append(problem["what"])
    for why, what in reasons.items():
        more = f" and {len(what) - 1} more" if len(what) > 1 else ""
        print(f"{what[0]}{more}: {why}")


def key(entry):
    return entry["operator"], entry["descriptor"], entry["extents"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--board", required=True, help="our program `board`")
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, such as dense,moe")
    parser.add_argument("--part", action="append", default=[],
                        help="part of a case's line, such as {tokens=8}, or of one group's cases, "
                             "such as attention:heads=64; may be repeated")
    parser.add_argument("--json", help="where to write everything")
    parser.add_argument("--limit", type=float, default=600, help="seconds a peer file may take")
    parser.add_argument("--verbose", action="store_true", help="print our own lines as well")
    arguments = parser.parse_args()
    cases, results, problems, board, files = [], [], [], None, {}
    with tempfile.TemporaryDirectory() as work:
        for group in arguments.only.split(","):
            if group not in GROUPS:
                parser.error(f"--only: {group} is none of {', '.join(GROUPS)}")
            operators, names = GROUPS[group]
            mine, found, wrong = ours(arguments, group, operators, work)
            cases, board, problems = cases + mine, board or found, problems + wrong
            for name in names if mine else []:
                files.setdefault(name, []).extend(mine)
        for name, shapes in files.items():
            some, wrong = peer(name, shapes, work, arguments.limit)
            print(f"{name}: {len(some)} figures", flush=True)
            results, problems = results + some, problems + wrong
    table(cases, results)
    listed(problems)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(dict(board=board, ours=cases, peers=results, problems=problems), file, indent=1)
    return 0 if cases else 1


if __name__ == "__main__":
    sys.exit(main())
