"""A run and a policy in, a verdict out."""

from __future__ import annotations

from datetime import date

from quantgate.gate.answer_notes import unlike_counting, unlike_lengths
from quantgate.gate.arm_verdict import invalid_arm, judge_arm
from quantgate.gate.comparability import (
    baseline_arm,
    check_match,
    unlike_paths,
    unlike_properties,
    untold_properties,
)
from quantgate.gate.corrections import beside_noise, confirm_failures, waive, waivers_by_arm
from quantgate.gate.delivery import arm_problems, load_notes, run_problems
from quantgate.gate.evaluate_gain import evaluate_gain
from quantgate.gate.evaluate_rule import evaluate_rule
from quantgate.gate.evidence import Evidence, Pairing
from quantgate.gate.exit_codes import exit_code, overall
from quantgate.gate.policy import Policy, Waiver
from quantgate.gate.verdict_model import ArmVerdict, RuleResult, Verdict
from quantgate.store.manifest import ArmManifest
from quantgate.store.run_folder import LoadedRun


def judge(run: LoadedRun, policy: Policy, *, today: date, seed: int = 0) -> Verdict:
    """Judge every candidate of a run against its baseline.

    `today` decides which waivers still hold; `seed` drives the bootstrap, so that a run has one verdict.
    Raises ConfigurationError (expired waiver, no candidate) and BaselineError (no baseline, arms that differ in what
    the policy wants equal).
    """
    manifest = run.manifest
    waivers = waivers_by_arm(policy, today)
    baseline = baseline_arm(manifest)
    candidates = [arm for arm in manifest.arms if arm.role == "candidate"]
    check_match(baseline, candidates, policy)
    evidence = Evidence(run)
    broken = run_problems(manifest) + arm_problems(manifest, evidence, baseline.arm_id)
    noise, notes = ([], []) if broken else _noise(run, policy, evidence, baseline, seed)
    arms = {
        candidate.arm_id: invalid_arm(broken)
        if broken
        else _judge_candidate(run, policy, evidence, (baseline, candidate), noise, waivers, seed)
        for candidate in candidates
    }
    answer_notes = [] if broken else _answer_notes(evidence, baseline, candidates)
    words = [arm.verdict for arm in arms.values()]
    return Verdict(
        verdict=overall(words),
        exit_code=exit_code(words),
        run_id=manifest.run_id,
        baseline=baseline.arm_id,
        policy=policy.name,
        policy_sha256=policy.sha256(),
        confidence=policy.confidence,
        arms=arms,
        aa=noise,
        notes=[
            *notes,
            *load_notes(manifest),
            *answer_notes,
            *unlike_paths(baseline, candidates),
            *unlike_properties(baseline, candidates, policy),
            *untold_properties(baseline, candidates, policy),
        ],
        inputs={
            "seed": seed,
            "resamples": policy.resamples,
            "requests": run.requests.num_rows,
            "quality_values": run.quality.num_rows,
            "plan_sha256": manifest.workload.plan_sha256 if manifest.workload else None,
            "weights_sha256": manifest.model.weights_sha256,
        },
    )


def _answer_notes(evidence: Evidence, baseline: ArmManifest, candidates: list[ArmManifest]) -> list[str]:
    pairings = [evidence.pair(baseline.arm_id, candidate.arm_id) for candidate in candidates]
    return [note for pairing in pairings for note in (*unlike_lengths(pairing), *unlike_counting(pairing))]


def _noise(
    run: LoadedRun, policy: Policy, evidence: Evidence, baseline: ArmManifest, seed: int
) -> tuple[list[RuleResult], list[str]]:
    """Every rule on the baseline against itself; empty where the run has no usable A/A arm."""
    arm = next((arm for arm in run.manifest.arms if arm.role == "aa"), None)
    if arm is None:
        return [], ["The run has no A/A arm: its own noise was not measured."]
    pairing = evidence.pair(baseline.arm_id, arm.arm_id)
    problems = arm_problems(run.manifest, evidence, arm.arm_id, pairing)
    if problems:
        return [], problems
    return _evaluate(pairing, policy, seed), []


def _judge_candidate(
    run: LoadedRun,
    policy: Policy,
    evidence: Evidence,
    pair: tuple[ArmManifest, ArmManifest],
    noise: list[RuleResult],
    waivers: dict[str, dict[str, Waiver]],
    seed: int,
) -> ArmVerdict:
    baseline, candidate = pair
    pairing = evidence.pair(baseline.arm_id, candidate.arm_id)
    problems = arm_problems(run.manifest, evidence, candidate.arm_id, pairing)
    if problems:
        return invalid_arm(problems)
    noise_by_rule = {result.rule: result for result in noise}
    results = [beside_noise(result, noise_by_rule.get(result.rule)) for result in _evaluate(pairing, policy, seed)]
    results = [waive(result, waivers.get(candidate.arm_id, {})) for result in results]
    results = confirm_failures(results, policy.confidence)
    wanted = policy.gain.rules if policy.gain else []
    gains = [evaluate_gain(pairing, gain, policy, pair, seed) for gain in wanted]
    return judge_arm(results, gains, policy, noise_measured=bool(noise))


def _evaluate(pairing: Pairing, policy: Policy, seed: int) -> list[RuleResult]:
    return [evaluate_rule(pairing, rule, policy, seed) for rule in policy.rules]
