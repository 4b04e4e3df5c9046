"""`quantgate doctor`, the machine and the environment of a run."""

from __future__ import annotations

import json
import platform

import pytest
import torch
import typer
from typer.testing import CliRunner

from quantgate import machine
from quantgate.cli.doctor import doctor
from quantgate.doctor import examine as examine_module
from quantgate.doctor import hardware, software
from quantgate.doctor.check import Check
from quantgate.doctor.kernel_paths import probe_kernel_paths
from quantgate.doctor.models import model_checks
from quantgate.environment import capture_environment
from quantgate_engine.quant.schemes import SCHEMES
from quantgate_kernels.registry import KERNEL_SETS

ROUNDED_FURTHER = {
    "int8-w8a8": ["linear layers int8"],
    "bnb-int8": ["linear layers int8 but for outliers"],
}
CPU_INFO = """processor\t: 0
model name\t: Some CPU 9000
flags\t\t: fpu avx2 fma avx512f avx512_bf16 unknown_flag

processor\t: 1
model name\t: Another CPU
"""


@pytest.fixture
def run_doctor():
    app = typer.Typer()
    app.command()(doctor)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_everything_that_is_needed_is_here(run_doctor, monkeypatch, tmp_path):
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path))
    result = run_doctor("--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["schema"] == "quantgate.doctor/1"
    assert document["healthy"] is True
    by_name = {check["name"]: check for check in document["checks"]}
    assert by_name["torch"]["found"] == torch.__version__
    assert by_name["model smollm2-135m-instruct"]["status"] == "missing"
    assert "quantgate fetch" in by_name["model smollm2-135m-instruct"]["advice"]


def test_what_is_missing_and_needed_makes_exit_code_2(run_doctor, monkeypatch):
    absent = Check("somelib", "missing", "not installed", required=True, advice="python -m pip install somelib[all]")
    monkeypatch.setattr(software, "library_checks", lambda: [absent])
    monkeypatch.setattr(examine_module, "probe_kernel_paths", None)
    result = run_doctor()
    assert result.exit_code == 2
    assert "somelib[all]" in result.stdout
    assert "Missing, and needed: somelib." in result.stdout


def test_library_of_a_wrong_version_blocks(monkeypatch):
    monkeypatch.setattr(software, "requires", lambda _: ["torch>=999", "nosuchlib>=1", 'pytest>=1; extra == "dev"'])
    old, absent = software.library_checks()
    assert (old.name, old.blocks, absent.name, absent.blocks) == ("torch", True, "nosuchlib", True)
    assert old.advice == 'python -m pip install "torch>=999"'


def test_missing_programs_are_told_but_do_not_block(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    for check in (software.compiler_check(), software.browser_check()):
        assert check.status == "missing"
        assert check.advice
        assert not check.blocks


def test_compiled_kernels_that_cannot_be_had_are_told_but_do_not_block(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", str(tmp_path / "absent"))
    check = software.compiled_kernels_check()
    assert check.status == "missing"
    assert "no C++ compiler" in check.found
    assert not check.blocks


def test_too_many_threads_are_told(monkeypatch):
    monkeypatch.setattr(hardware, "usable_cores", lambda: torch.get_num_threads() - 1)
    check = hardware.thread_check()
    assert check.status == "note"
    assert check.advice is not None
    assert f"OMP_NUM_THREADS={torch.get_num_threads() - 1}" in check.advice


def test_damaged_model_blocks(monkeypatch, tmp_path):
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path))
    folder = tmp_path / "models" / "smollm2-135m-instruct"
    folder.mkdir(parents=True)
    (folder / "quantgate.json").write_text("{}")
    (check,) = model_checks()
    assert check.blocks
    assert "config.json" in (check.advice or "")


def test_every_scheme_of_every_kernel_set_names_its_paths():
    probed = probe_kernel_paths()
    runnable = {entry.kernel_set for entry in probed}
    assert {"reference"} <= runnable <= set(KERNEL_SETS)
    assert {(entry.kernel_set, entry.scheme) for entry in probed} == {(k, s) for k in runnable for s in SCHEMES}
    for entry in probed:
        operations = {operation.split(".rows")[0].split("-g")[0] for operation in entry.paths}
        assert {"rms_norm", "rope_and_write_kv", "silu_and_mul", "attention", "head"} <= operations
        assert any(operation.startswith("linear.") for operation in operations)
        width, *linear_layers = entry.compute_dtype.split(", ")
        assert width in ("float32", "bfloat16", "float16")
        assert linear_layers == ROUNDED_FURTHER.get(entry.scheme, [])


def test_processor_is_read_from_its_first_entry(monkeypatch, tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text(CPU_INFO)
    monkeypatch.setattr(machine, "CPU_INFO", path)
    assert machine.cpu_name() == "Some CPU 9000"
    assert machine.instruction_sets() == ["avx2", "fma", "avx512f", "avx512_bf16"]
    monkeypatch.setattr(machine, "CPU_INFO", tmp_path / "absent")
    assert machine.cpu_name()
    assert machine.instruction_sets() == []


@pytest.mark.parametrize(("limit", "expected"), [("1000\n", 1000), ("max\n", None), (None, None)])
def test_memory_is_the_containers_where_that_is_less(monkeypatch, tmp_path, limit, expected):
    path = tmp_path / "memory.max"
    if limit is not None:
        path.write_text(limit)
    monkeypatch.setattr(machine, "CGROUP_MEMORY_LIMIT", path)
    physical = machine.psutil.virtual_memory().total
    assert machine.memory_bytes() == (physical if expected is None else expected)


def test_gpus_are_named_and_which_of_them_is_taken(monkeypatch):
    names = ["First", "Second"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(names))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(names))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: names[index])
    check = hardware.gpu_check()
    assert (check.status, check.found) == ("ok", "First, Second")
    assert "run on the first" in check.advice
    names.pop()
    assert hardware.gpu_check().advice is None
    names.pop()
    assert (hardware.gpu_check().status, hardware.gpu_check().found) == ("note", "torch sees none")


def test_environment_names_what_is_installed():
    environment = capture_environment(device="cpu")
    assert environment.python == platform.python_version()
    assert environment.versions["torch"] == torch.__version__
    assert environment.threads == torch.get_num_threads()
    assert environment.cores >= 1
    assert type(environment).model_validate_json(environment.model_dump_json()) == environment
