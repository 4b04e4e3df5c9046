"""The JSON schemas that editors use are those of the models, and accept every file that travels with quantgate."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from quantgate.published_schemas import as_text, published_schemas

SUITES = Path(__file__).parents[2] / "suites"
FILES = [
    *((path, "suite.schema.json") for path in sorted(SUITES.glob("*.yaml"))),
    *((path, "policy.schema.json") for path in sorted((SUITES / "policies").glob("*.yaml"))),
    *((path, "task.schema.json") for path in sorted((SUITES / "tasks").glob("*.yaml"))),
]


def test_files_are_those_of_the_models() -> None:
    for file_name, schema in published_schemas().items():
        assert (SUITES / "schemas" / file_name).read_text(encoding="utf-8") == as_text(schema), (
            "run: python -m quantgate.published_schemas suites/schemas"
        )


@pytest.mark.parametrize(("path", "schema"), FILES, ids=lambda value: getattr(value, "stem", value))
def test_bundled_files_are_valid(path: Path, schema: str) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), published_schemas()[schema])


def test_an_unknown_key_is_refused() -> None:
    suite = yaml.safe_load((SUITES / "quick.yaml").read_text(encoding="utf-8")) | {"nonsense": 1}
    with pytest.raises(jsonschema.ValidationError, match="nonsense"):
        jsonschema.validate(suite, published_schemas()["suite.schema.json"])
