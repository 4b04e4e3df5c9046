"""Azure's CSV as columns: what `AzureTrace` reads row by row, some ten times as fast.

The file is read in pieces of whole lines. A piece whose rows are all written the plain way is parsed by pyarrow; any
other one, and one with a row that is wrong or out of order, by the row reader, so that values and errors are its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from quantgate.traces.azure_reader import COLUMNS, azure_row, require_header
from quantgate.traces.consistency import RowOrder
from quantgate.traces.left_out_rows import LeftOutRows
from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.shape.batch import ArrivalBatch, Integers
from quantgate.traces.source_text import BYTE_ORDER_MARK, LONGEST_ROW_BYTES, lines_from, opened

PIECE_BYTES = 16_000_000

_PLAIN_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|\+00:00)?$"
_PLAIN_TOKENS = r"^[0-9]{1,9}$"
_UTC_ENDINGS = ("Z", "+00:00")
Texts: TypeAlias = "pa.ChunkedArray[pa.StringScalar]"


def azure_batches(path: Path, left_out: LeftOutRows, piece_bytes: int = PIECE_BYTES) -> Iterator[ArrivalBatch]:
    """The rows of a file that are traffic, its header checked; the others are added to `left_out`.

    Raises ConfigurationError as the row reader, `RowOrder` and `left_out` do.
    """
    with opened(path) as file:
        number = _skip_header(file, path) + 1
        order = RowOrder(str(path))
        start_ns: int | None = None
        for piece in _pieces(file, piece_bytes):
            columns = _plain_columns(piece)
            if columns is not None:
                first_ns, last_ns = int(columns.scheduled_ns[0]), int(columns.scheduled_ns[-1])
                zero_ns = first_ns if start_ns is None else start_ns
                if order.follow(first_ns - zero_ns, last_ns - zero_ns):
                    start_ns = zero_ns
                    yield ArrivalBatch(columns.scheduled_ns - zero_ns, columns.input_tokens, columns.output_tokens)
                    number += piece.count(b"\n")
                    continue
            start_ns, batch = _row_by_row(piece, path, number, order, left_out, start_ns)
            yield batch
            number += piece.count(b"\n")


def _skip_header(file: BufferedReader, path: Path) -> int:
    """The number of the header's line, behind which the file then stands."""
    number = 0
    while raw := file.readline(LONGEST_ROW_BYTES + 1):
        number += 1
        for line in lines_from(BytesIO(raw), path, number):
            require_header(line, str(path))
            return number
    return number


def _pieces(file: BufferedReader, piece_bytes: int) -> Iterator[bytes]:
    """What is left of a file, cut at ends of lines; a row too long is cut, for the row reader to refuse."""
    while piece := file.read(piece_bytes):
        yield piece if piece.endswith(b"\n") else piece + file.readline(LONGEST_ROW_BYTES + 1)


def _plain_columns(piece: bytes) -> ArrivalBatch | None:
    """The rows of a piece, with times since 1970; None unless every row is plain and in order."""
    # pyarrow would pass over a mark, and end a row at a carriage return alone.
    if piece.startswith(BYTE_ORDER_MARK) or piece.count(b"\r") != piece.count(b"\r\n"):
        return None
    try:
        table = csv.read_csv(
            BytesIO(piece),
            read_options=csv.ReadOptions(column_names=list(COLUMNS)),
            parse_options=csv.ParseOptions(quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(COLUMNS, pa.string()), strings_can_be_null=False
            ),
        )
        times, inputs, outputs = (table.column(name) for name in COLUMNS)
        if not (_all_match(times, _PLAIN_TIME) and _all_match(inputs, _PLAIN_TOKENS)):
            return None
        if not _all_match(outputs, _PLAIN_TOKENS):
            return None
        columns = ArrivalBatch(_nanoseconds(times), _integers(inputs), _integers(outputs))
    except pa.ArrowInvalid:
        # Rows of other than three cells, bytes that are not UTF-8, no rows at all, days that no month has.
        return None
    in_order = bool(np.all(columns.scheduled_ns[1:] >= columns.scheduled_ns[:-1]))
    some_tokens = min(int(columns.input_tokens.min()), int(columns.output_tokens.min())) >= 1
    return columns if in_order and some_tokens else None


def _all_match(texts: Texts, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _nanoseconds(times: Texts) -> Integers:
    for ending in _UTC_ENDINGS:
        ends_so = pc.ends_with(times, ending)
        if pc.any(ends_so).as_py():
            times = pc.if_else(ends_so, pc.utf8_slice_codeunits(times, 0, -len(ending)), times)
    return np.asarray(pc.cast(pc.cast(times, pa.timestamp("ns")), pa.int64()))


def _integers(texts: Texts) -> Integers:
    return np.asarray(pc.cast(texts, pa.int64()))


def _row_by_row(
    piece: bytes, path: Path, first_number: int, order: RowOrder, left_out: LeftOutRows, start_ns: int | None
) -> tuple[int | None, ArrivalBatch]:
    times, inputs, outputs = [], [], []
    for line in lines_from(BytesIO(piece), path, first_number):
        row = azure_row(line, str(path))
        try:
            row.refuse_empty()
        except RowLeftOutError as reason:
            left_out.add(line.number, reason)
            continue
        start_ns = row.time_ns if start_ns is None else start_ns
        order.check_time(row.time_ns - start_ns, line.number)
        times.append(row.time_ns - start_ns)
        inputs.append(row.context_tokens)
        outputs.append(row.generated_tokens)
    columns = (np.array(column, dtype=np.int64) for column in (times, inputs, outputs))
    return start_ns, ArrivalBatch(*columns)
