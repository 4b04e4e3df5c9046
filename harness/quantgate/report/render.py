"""`render_report`: a stored run and its verdict as one HTML file that needs nothing else."""

from __future__ import annotations

from quantgate.gate.verdict_model import Verdict
from quantgate.report.page import render_page
from quantgate.report.run_view import RunView
from quantgate.report.sections.answer_differences import answer_differences
from quantgate.report.sections.arms import arms_table
from quantgate.report.sections.capabilities import capabilities_table, tier_table
from quantgate.report.sections.distribution_quality import distribution_table
from quantgate.report.sections.engine_settings import engine_settings_table
from quantgate.report.sections.fidelity import fidelity_section
from quantgate.report.sections.flip_ledger import flip_ledger
from quantgate.report.sections.judged_answers import judged_answers
from quantgate.report.sections.kv_cache import kv_cache_section
from quantgate.report.sections.latency import latency_section
from quantgate.report.sections.provenance import on_the_grid_before, previous_quantization, provenance_section
from quantgate.report.sections.quantized_builds import quantized_builds
from quantgate.report.sections.savings import savings_table
from quantgate.report.sections.server_metrics import server_metrics_section
from quantgate.report.sections.task_quality import behaviour_table, task_table
from quantgate.report.sections.throughput_bounds import has_bounds, limits_table
from quantgate.report.sections.time_split import time_split_section
from quantgate.report.sections.timeline import timeline_section
from quantgate.report.sections.verdict import VERDICT_WORDS, aa_rows, arm_cards
from quantgate.report.unanswered_requests import COUNTED_AS, any_unanswered, unanswered_lines
from quantgate.store.run_folder import LoadedRun


def render_report(run: LoadedRun, verdict: Verdict | None, *, price_per_hour: float | None = None) -> str:
    """The report as HTML.

    `verdict` is None where the run ended before it could be judged. `price_per_hour` (any currency) turns engine time
    into cost per million output tokens. Sections whose data the run does not have say so or are left out.
    """
    view = RunView(run, verdict, price_per_hour)
    return render_page(
        "report.html.j2",
        {
            "manifest": run.manifest,
            "verdict": verdict,
            "verdict_words": VERDICT_WORDS[verdict.verdict] if verdict else None,
            "previous_quantization": previous_quantization(view),
            "on_the_grid_before": on_the_grid_before(view),
            "cards": arm_cards(view),
            "aa": aa_rows(view),
            "arms": arms_table(view),
            "has_bounds": has_bounds(view),
            "limits": limits_table(view),
            "unanswered": [*unanswered_lines(view), COUNTED_AS] if any_unanswered(view) else [],
            "savings": savings_table(view),
            "latency": latency_section(view),
            "timeline": timeline_section(view),
            "time_split": time_split_section(view),
            "kv_cache": kv_cache_section(view),
            "server_metrics": server_metrics_section(view),
            "engine_settings": engine_settings_table(view),
            "tiers": tier_table(view),
            "capabilities": capabilities_table(view),
            "distribution": distribution_table(view),
            "tasks": task_table(view),
            "behaviour": behaviour_table(view),
            "flips": flip_ledger(view),
            "answers": answer_differences(view),
            "judged": judged_answers(view),
            "fidelity": fidelity_section(view),
            "provenance": provenance_section(view),
            "quantized_builds": quantized_builds(view),
        },
    )
