"""The run-time checker of annotations in tests: beartype, with int allowed where float is asked."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
