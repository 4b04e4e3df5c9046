"""One file per section of the report: from the run to ready tables, charts and sentences."""
