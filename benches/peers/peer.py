"""What every peer shares: the cases of our own run, timing from cold memory, and results.

A peer is a file with a function `peers(bench)` that yields nothing and calls `bench.add` for every
call it can make; `run.py` starts each file in a process of its own.
"""
import contextlib
import importlib.util
import json
import os
import re
import sys
import traceback

import torch

TOUCH_BYTES = 300e6  # a graph goes through as much before it reads the same weights again
MOST_COPIES = 1024
LAUNCHES, REPLAYS, GRAPH_MS = 20, 15, 40.0
DEVICE = "cuda"


class Absent(Exception):
    """A peer that is not installed; says what to install."""


def fields(line):
    """The numbers of a descriptor's or an extents' line, nested names included; last one wins."""
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)(?![\w.])", line)}


class Case:
    """One shape of ours: `case["n"]`, `case["tokens"]`, and its floor."""

    def __init__(self, ours):
        self.key = ours["operator"], ours["descriptor"], ours["extents"]
        self.operator, self.line = ours["operator"], ours["descriptor"]
        self.numbers = fields(ours["descriptor"]) | fields(ours["extents"])

    def __getitem__(self, name):
        return self.numbers[name]

    def get(self, name):
        return self.numbers.get(name)


def folder():
    """Where the user keeps what is not installed as a package."""
    return os.environ.get("TANDEM_PEERS", "")


def vllm_folders():
    """Where vLLM lies, in the folder of peers or installed. It is never imported: its parts work
    without it, and it wants a newer torch."""
    spec = importlib.util.find_spec("vllm")
    places = [os.path.join(folder(), "vllm")] if folder() else []
    return places + (list(spec.submodule_search_locations) if spec else [])


VLLM = vllm_folders()


def package(name, hint):
    """A package that is installed, lies in the folder of peers, or comes with vLLM."""
    carried = [os.path.join(place, "third_party") for place in VLLM]
    carried += [os.path.join(place, "flashmla") for place in carried]
    sys.path += [place for place in carried if place not in sys.path]
    if folder() and folder() not in sys.path:
        sys.path.insert(0, folder())
    with loading(hint):
        return importlib.import_module(name)


@contextlib.contextmanager
def loading(hint):
    """What is there but does not load is absent as well."""
    try:
        yield
    except Exception as error:
        raise Absent(f"{hint} ({type(error).__name__}: {str(error)[:200]})") from error


def library(name):
    """Loads one of vLLM's extension libraries, from the folder of peers or the package."""
    hint = f"{name}.abi3.so: pip install vllm==0.33.0, or put it into TANDEM_PEERS"
    for place in [folder()] + VLLM:
        path = os.path.join(place, f"{name}.abi3.so")
        if place and os.path.exists(path):
            with loading(hint):
                torch.ops.load_library(path)
            return
    raise Absent(hint)


def ffi_module(name, hint):
    """A module that was built for tvm-ffi, in the folder of peers."""
    path = os.path.join(folder(), f"{name}.so")
    if not folder() or not os.path.exists(path):
        raise Absent(f"{name}.so in TANDEM_PEERS: {hint}")
    ffi = package("tvm_ffi", "pip install apache-tvm-ffi==0.1.11")
    with loading(f"{name}.so does not load: {hint}"):
        return ffi.load_module(path)


def copies(size_bytes, most=MOST_COPIES):
    """How many copies of so many bytes no cache holds."""
    return int(max(1, min(most, -(-TOUCH_BYTES // max(size_bytes, 1)))))


def codes(*shape):
    """Random FP8 codes without NaN."""
    return (torch.randn(*shape, device=DEVICE) * 60).clamp_(-448, 448).to(torch.float8_e4m3fn)


def distance(out, reference):
    """Relative error in the 2-norm; NaN for outputs that are not finite."""
    out, reference = out.double(), reference.double()
    if not torch.isfinite(out).all():
        return float("nan")
    return float((out - reference).norm() / reference.norm().clamp_min(1e-30))


def timed(calls):
    """Microseconds of a call inside a graph that goes through `calls` in turn: median, p10, p90."""
    calls[0]()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    calls[-1]()
    end.record()
    torch.cuda.synchronize()
    launches = max(LAUNCHES, len(calls))
    launches = min(launches, max(2, int(GRAPH_MS / max(start.elapsed_time(end), 1e-4))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for turn in range(launches):
            calls[turn % len(calls)]()
    for _ in range(2):
        graph.replay()
    times = []
    for _ in range(REPLAYS):
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / launches)
    times.sort()
    tenth = len(times) // 10
    return dict(us=times[len(times) // 2], p10_us=times[tenth], p90_us=times[-1 - tenth],
                launches=launches, replays=REPLAYS)


class Bench:
    """Collects the figures of one peer file."""

    def __init__(self, ours, path):
        self.all, self.path = [Case(case) for case in ours], path
        self.results, self.problems, seen = [], [], set()
        self.all = [c for c in self.all if not (c.key in seen or seen.add(c.key))]

    def cases(self, operator, **wanted):
        """Our shapes of an operator that have these numbers."""
        for case in self.all:
            if case.operator == operator and all(case.get(k) == v for k, v in wanted.items()):
                yield case

    def add(self, case, peer, contract, make, limit=1.2e-2):
        """Checks and times a peer. `make()` gives the calls and, of the first, output and
        reference; `contract` says what the peer computes where it is not what we do."""
        try:
            calls, check = make()
            error = distance(*check())
            if not error < limit:
                raise ArithmeticError(f"relative error {error:.2e}, {limit:.0e} is allowed")
            figures = timed(calls)
        except Absent:
            raise
        except Exception as error:
            self.problem(f"{peer} {''.join(case.key)}", f"{type(error).__name__}: {str(error)[:200]}")
            if os.environ.get("TRACE"):
                traceback.print_exc()
            self.write()
            if "CUDA error" in str(error):  # nothing runs in this process any more
                raise SystemExit("ended by a CUDA error") from error
            return
        operator, descriptor, extents = case.key
        self.results.append(dict(operator=operator, descriptor=descriptor, extents=extents,
                                 peer=peer, contract=contract, error=error, **figures))
        self.write()

    def problem(self, what, why):
        self.problems.append(dict(what=what, why=why))

    def write(self):
        """After every call, so that a later one that ends the process takes no figure with it."""
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(dict(results=self.results, problems=self.problems), file)
        os.replace(self.path + ".new", self.path)


def main(peers):
    """`FILE.py OURS.json OUT.json`"""
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    with open(sys.argv[1], encoding="utf-8") as file:
        bench = Bench(json.load(file)["cases"], sys.argv[2])
    try:
        peers(bench)
    except Absent as absent:
        bench.problem(f"SKIPPED {os.path.basename(sys.argv[0])[:-3]}", str(absent))
    bench.write()
