"""Records to rows: named fields of any kind become numbers, online, and the same on replay."""

from onebit.encoding.encoder import Encoded, Encoder
from onebit.encoding.fields import named_parts, record_from_json, record_to_json
from onebit.encoding.state import ColumnInfo, TableColumn

__all__ = ["ColumnInfo", "Encoded", "Encoder", "TableColumn", "named_parts", "record_from_json", "record_to_json"]
