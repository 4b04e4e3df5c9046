"""Compiling on first use: once, whole, safe beside other processes, and told in one sentence where it cannot be."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from tests.kernel_sets import ON_CPU

from quantgate_kernels import registry
from quantgate_kernels.cpu import build
from quantgate_kernels.cpu.compiler import find_compiler
from quantgate_kernels.cpu.library import bind, load_functions
from quantgate_kernels.kernel_set_names import AUTO, KernelSetName
from quantgate_kernels.registry import KERNEL_SETS, make_kernel_set
from quantgate_kernels.unavailable import KernelSetUnavailableError

TINY = 'extern "C" int quantgate_answer() { return 42; }\n'


def have_compiler() -> bool:
    try:
        find_compiler()
    except KernelSetUnavailableError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not have_compiler(), reason="no C++ compiler on this machine")


@pytest.fixture
def tiny_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source that compiles in no time, in place of the kernels."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "tiny.cpp").write_text(TINY)
    monkeypatch.setattr(build, "SOURCE", folder)
    return folder


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A process that has loaded no kernels yet, and an empty cache."""
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "cache"))
    load_functions.cache_clear()
    registry._fastest.cache_clear()
    yield
    load_functions.cache_clear()
    registry._fastest.cache_clear()


def compiler_script(folder: Path, body: str) -> str:
    script = folder / "c++"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_the_names_of_settings_are_those_of_the_registry() -> None:
    assert set(KernelSetName.__args__) == {AUTO, *KERNEL_SETS}


@needs_compiler
def test_auto_takes_the_compiled_set_and_a_device_without_one_the_reference() -> None:
    assert make_kernel_set().name == "cpu"
    assert make_kernel_set(AUTO, "cuda").name == "reference"
    with pytest.raises(KernelSetUnavailableError, match="do not run on the device cuda"):
        make_kernel_set("cpu", "cuda")


@pytest.mark.parametrize("name", ON_CPU)
def test_every_registered_set_is_made_by_its_name(name: str) -> None:
    if name == "reference" or have_compiler():
        assert make_kernel_set(name).name == name


def test_an_unknown_set_is_named_with_those_that_exist() -> None:
    with pytest.raises(KeyError, match="unknown kernel set 'fast'; known: auto, cpu, reference, triton"):
        make_kernel_set("fast")


@needs_compiler
def test_what_is_in_the_cache_is_not_compiled_again(
    tiny_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, real = tmp_path / "log", find_compiler().command[0]
    logging_compiler = compiler_script(tmp_path, f'echo "$@" >> {log}; exec {real} "$@"')
    monkeypatch.setenv("CXX", logging_compiler)
    first = build.build_library(tmp_path / "kernels")
    assert build.build_library(tmp_path / "kernels") == first
    compilations = [line for line in log.read_text().splitlines() if " -c " in line]
    assert len(compilations) == 1
    (tiny_source / "tiny.cpp").write_text(TINY.replace("42", "43"))
    changed = build.build_library(tmp_path / "kernels")
    assert changed != first
    assert sorted((tmp_path / "kernels").iterdir()) == sorted((first, changed))


def replace(library: Path, content: bytes) -> None:
    """As a new file: this process has loaded the old one, and would die of a change under it when it ends."""
    library.unlink()
    library.write_bytes(content)


def cut(library: Path) -> None:
    replace(library, library.read_bytes()[: library.stat().st_size // 2])


def spoil(library: Path) -> None:
    content = bytearray(library.read_bytes())
    content[len(content) // 2] ^= 1
    replace(library, bytes(content))


def unmark(library: Path) -> None:
    replace(library, library.read_bytes()[:-1])


@needs_compiler
@pytest.mark.parametrize("damage", [cut, spoil, unmark], ids=lambda damage: damage.__name__)
def test_a_damaged_library_is_compiled_anew_and_not_loaded(
    damage: Callable[[Path], None], tiny_source: Path, tmp_path: Path
) -> None:
    library = build.build_library(tmp_path / "kernels")
    whole = library.stat().st_size
    damage(library)
    assert build.build_library(tmp_path / "kernels") == library
    assert library.stat().st_size == whole
    program = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).quantgate_answer())"
    loaded = subprocess.run([sys.executable, "-c", program, str(library)], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "42"


@needs_compiler
def test_what_a_killed_process_left_half_written_goes_after_a_day(tiny_source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    old, young = folder / ".cpu-a.x.partial", folder / ".cpu-b.y.partial"
    for partial in (old, young):
        partial.write_bytes(b"")
    day_before = time.time() - build.ABANDONED_AFTER_S - 60
    os.utime(old, (day_before, day_before))
    built = build.build_library(folder)
    assert sorted(folder.iterdir()) == sorted((built, young))


@needs_compiler
def test_a_compiler_that_does_not_know_the_machine_compiles_for_any(
    tiny_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = find_compiler().command[0]
    refusal = 'case "$*" in *march=native*) echo "error: unknown machine" >&2; exit 1;; esac'
    monkeypatch.setenv("CXX", compiler_script(tmp_path, f'{refusal}; exec {real} "$@"'))
    assert build.build_library(tmp_path / "kernels").stat().st_size > 0


@needs_compiler
def test_two_processes_may_build_at_once(tiny_source: Path, tmp_path: Path) -> None:
    program = (
        "import ctypes, sys; from pathlib import Path; from quantgate_kernels.cpu import build;"
        "build.SOURCE = Path(sys.argv[1]); library = build.build_library(Path(sys.argv[2]));"
        "print(ctypes.CDLL(str(library)).quantgate_answer())"
    )
    command = [sys.executable, "-c", program, str(tiny_source), str(tmp_path / "kernels")]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [builder.communicate()[0].strip() for builder in builders] == ["42"] * 4
    assert len(list((tmp_path / "kernels").iterdir())) == 1


FAILURES = {
    "no compiler": ("/nowhere/c++", r"no C\+\+ compiler was found \(tried CXX=/nowhere/c\+\+\); correct or unset CXX"),
    "no command": ('c++ "', "CXX is 'c\\+\\+ \"', no command .No closing quotation.; correct or unset it"),
    "a compiler that fails": ("error: the disk is tired", "could not compile them .error: the disk is tired"),
    "a full disk": ("ld: final link failed: No space left on device", "found no space left for them in .*; free some"),
    "a compiler that writes rubbish": ("RUBBISH", "could not compile them .*: (invalid ELF header|file too short)"),
    "a compiler that writes nothing": ("NOTHING", "could not compile them .*: file too short"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_without_compiled_kernels_the_reference_runs_and_one_sentence_says_why(
    failure: str, fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program, message = FAILURES[failure]
    bodies = {"RUBBISH": 'for last; do true; done; echo rubbish > "$last"', "NOTHING": "exit 0"}
    if " " in program and "c++" not in program:
        bodies[program] = f'echo "{program}" >&2; exit 1'
    if program in bodies:
        program = compiler_script(tmp_path, f'[ "$1" = --version ] && exec echo 1.0; {bodies[program]}')
    monkeypatch.setenv("CXX", program)
    with caplog.at_level(logging.WARNING):
        assert [make_kernel_set().name for _ in range(3)] == ["reference"] * 3
    [record] = caplog.records
    assert record.getMessage().startswith("The `cpu` kernels are not used: ")
    with pytest.raises(KernelSetUnavailableError, match=message):
        make_kernel_set("cpu")


def test_a_cache_that_cannot_be_written_is_no_failure(
    fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if not have_compiler():
        pytest.skip("no C++ compiler on this machine")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING):
        assert make_kernel_set().name == "reference"
    assert "set QUANTGATE_CACHE to a folder that can" in caplog.records[0].getMessage()


@needs_compiler
def test_the_kernels_compile_without_warnings_and_run_on_torchs_own_threads(tmp_path: Path) -> None:
    command = [*find_compiler().command, *build.COMMON_FLAGS, "-Wall", "-Wextra", "-Werror"]
    library = tmp_path / "strict.so"
    objects = build.compile_units(command, tmp_path)
    subprocess.run([*command, "-shared", *map(str, objects), "-o", str(library)], check=True)
    before = open_mp_runtimes()
    gate_up, out = torch.ones(64, 2048), torch.zeros(64, 1024)
    bind(library)[torch.float32].silu_and_mul(gate_up.data_ptr(), out.data_ptr(), 64, 1024, 2)
    torch.testing.assert_close(out, torch.full((64, 1024), 0.7310586))
    assert open_mp_runtimes() == before


def open_mp_runtimes() -> set[str]:
    mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    return {name for name in mapped if "omp" in Path(name).name and ".so" in name}


@needs_compiler
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """A program of its own, with guarded buffers of odd sizes, under the address and undefined behaviour sanitizers."""
    program = tmp_path / "sanitized"
    driver = Path(__file__).parent / "sanitized_kernels.cpp"
    flags = ["-std=c++17", "-O1", "-g", "-fopenmp-simd", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [*find_compiler().command, *flags]
    units = build.compile_units(command, tmp_path)
    built = subprocess.run(
        [*command, str(driver), *map(str, units), "-o", str(program)], capture_output=True, text=True
    )
    if built.returncode != 0 and "cannot find" in built.stderr:
        pytest.skip("this compiler has no sanitizer runtime")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert ran.returncode == 0, ran.stderr
    assert "finished" in ran.stdout
