"""Cron expressions with a time zone, as schedules have them: `TZ=Europe/Berlin 0 3 * * 1`."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from localvertex.serve.api.errors import invalid

PREFIX = re.compile(r"(?:CRON_TZ|TZ)=(?P<zone>\S*)\s+(?P<expression>.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Cron:
    """When a schedule fires. Without a prefix the zone is UTC."""

    expression: str
    zone: ZoneInfo

    @classmethod
    def parse(cls, text: str) -> "Cron":
        """Reads what stands in the field `cron`.

        Raises:
            ApiError: no cron expression, an unknown time zone, or nothing that ever comes.
        """
        match = PREFIX.fullmatch(text.strip())
        name, expression = (match["zone"], match["expression"].strip()) if match else ("UTC", text.strip())
        try:
            zone = ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise invalid(f"cron {text[:100]!r}: {name[:60]!r} is not in the IANA time zone database") from None
        if len(expression.split()) != 5:
            raise invalid(
                f"cron {text[:100]!r}: five fields expected, e.g. '0 3 * * 1' or 'TZ=Europe/Berlin 0 3 * * 1'"
            )
        cron = cls(expression=expression, zone=zone)
        try:
            cron.after(datetime.now(UTC))
        except CronSimError as error:
            raise invalid(f"cron {text[:100]!r}: {error}") from None
        except StopIteration:
            raise invalid(f"cron {text[:100]!r}: no such day ever comes") from None
        return cron

    def after(self, moment: datetime) -> datetime:
        """The first instant after a moment, in UTC.

        On the days when clocks change it is Debian's cron: what would fall into the missing hour comes right after it,
        what falls into the doubled one comes once, and only jobs of every hour follow the real hours.
        """
        return next(CronSim(self.expression, moment.astimezone(self.zone))).astimezone(UTC)
