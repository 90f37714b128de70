"""Records to rows: named fields of any kind become numbers, online, and the same on replay."""

from onebit.encoding.encoder import Encoded, Encoder, TableColumn
from onebit.encoding.fields import record_from_json, record_to_json
from onebit.encoding.state import ColumnInfo

__all__ = ["ColumnInfo", "Encoded", "Encoder", "TableColumn", "record_from_json", "record_to_json"]
