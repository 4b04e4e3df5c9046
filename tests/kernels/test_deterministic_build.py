"""The products of fixed order as programs of their own, for this machine's instructions and for any machine's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quantgate_kernels.cpu import build
from quantgate_kernels.cpu.compiler import find_compiler
from quantgate_kernels.unavailable import KernelSetUnavailableError

SANITIZERS = ("-std=c++17", "-O1", "-g", "-fopenmp-simd", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.parametrize("instructions", [(), ("-march=native",)], ids=["any machine", "this machine"])
def test_sanitizers_find_nothing(instructions: tuple[str, ...], tmp_path: Path) -> None:
    """Both ways to multiply: in float32 lanes, and by the processor's own 16-bit products where it has them."""
    try:
        compiler = find_compiler().command
    except KernelSetUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    units = [str(build.SOURCE / name) for name in ("fixed_order/fixed_order_product.cpp", "common/parallel.cpp")]
    driver, program = Path(__file__).parent / "sanitized_products.cpp", tmp_path / "sanitized"
    command = [*compiler, *SANITIZERS, *instructions, "-Wno-psabi", f"-I{build.SOURCE}", str(driver), *units]
    built = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
    if built.returncode != 0 and "cannot find" in built.stderr:
        pytest.skip("this compiler has no sanitizer runtime")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert ran.returncode == 0, ran.stderr
    assert "finished" in ran.stdout
