"""Autotuning and benchmarks of Triton: times on a simulator mean nothing, so an
autotuned kernel runs one configuration, and what is benchmarked runs once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from . import settings

_said: set[str] = set()


def _say_once(sentence: str) -> None:
    if sentence not in _said:
        _said.add(sentence)
        sys.stdout.flush()
        print(f"kiln: {sentence}", file=sys.stderr, flush=True)


def do_bench(
    fn: Callable[[], Any],
    *arguments: Any,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **options: Any,
) -> Any:
    """triton.testing.do_bench: runs `fn` once. The time is this machine's."""
    _say_once(
        "a benchmark of Triton (do_bench) runs once; its times are those of the simulator, and "
        "say nothing of a GPU"
    )
    begun = time.perf_counter()
    fn()
    milliseconds = (time.perf_counter() - begun) * 1e3
    if quantiles is not None:
        times = [milliseconds] * len(quantiles)
        return times[0] if len(times) == 1 else times
    return [milliseconds] if return_mode == "all" else milliseconds


def _name_of(tuner: Any) -> str:
    return str(getattr(tuner.base_fn, "__name__", "a kernel"))


def _run_some(tuner: Any, own_run: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
    """With the first configurations that the device has room for."""
    from triton.runtime.errors import OutOfResources

    most = settings.configurations()
    every = tuner.configs
    if most is None or len(every) <= most:
        return own_run(tuner, *arguments, **keywords)
    tuner.nargs = dict(zip(tuner.arg_names, arguments))
    kept = list(tuner.prune_configs(keywords))
    _say_once(
        f"{_name_of(tuner)} has {len(every)} configurations and runs in {min(most, len(kept))} of "
        "them; --configs all runs all"
    )
    if most > 1:
        return _run_with(tuner, own_run, kept[:most], arguments, keywords)
    for at, config in enumerate(kept):
        try:
            return _run_with(tuner, own_run, [config], arguments, keywords)
        except OutOfResources:
            if at + 1 == len(kept):
                raise
    raise ValueError(f"no configuration of {_name_of(tuner)} is left by its early_config_prune")


def _run_with(
    tuner: Any, own_run: Callable[..., Any], configs: list[Any], arguments: Any, keywords: Any
) -> Any:
    every, tuner.configs = tuner.configs, configs
    prune, tuner.prune_configs = tuner.prune_configs, lambda _: configs
    try:
        return own_run(tuner, *arguments, **keywords)
    finally:
        tuner.configs, tuner.prune_configs = every, prune


def _run_one_size(mark: Any, extra: dict[str, Any]) -> None:
    """Mark.run: what perf_report draws, at the first of its sizes."""
    several = isinstance(mark.benchmarks, (list, tuple))
    for bench in mark.benchmarks if several else [mark.benchmarks]:
        first = next(iter(bench.x_vals))
        values = first if isinstance(first, (list, tuple)) else [first] * len(bench.x_names)
        sizes = dict(zip(bench.x_names, values))
        shown = ", ".join(f"{name} = {value}" for name, value in sizes.items())
        _say_once(
            f"{bench.plot_name or 'a benchmark'} (perf_report) runs for its first size alone, "
            f"{shown}; --configs all runs all"
        )
        for value in bench.line_vals:
            mark.fn(**sizes, **{bench.line_arg: value}, **bench.args, **extra)


def prepare() -> None:
    import triton.testing
    from triton.runtime.autotuner import Autotuner

    own_run = Autotuner.run

    def run(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return _run_some(self, own_run, arguments, keywords)

    Autotuner.run = run
    own_report = triton.testing.Mark.run

    def report(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if settings.configurations() is None:
            return own_report(self, *arguments, **keywords)
        words = ("show_plots", "print_data", "save_path", "return_df", "diff_col", "save_precision")
        extra = {name: value for name, value in keywords.items() if name not in words}
        return _run_one_size(self, extra)

    triton.testing.Mark.run = report
    for name in ("do_bench", "do_bench_cudagraph"):
        if hasattr(triton.testing, name):
            setattr(triton.testing, name, do_bench)
