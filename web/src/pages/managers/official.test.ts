import assert from "node:assert/strict";
import { test } from "node:test";

import { addTexts } from "../../text/i18n";
import texts from "../../text/locales/managers.en.json";
import { choices, evidenceOf, kindsOf, periodFor, periodsLater, periodText, reportOf, valueText } from "./official";

const kBoth = { kind: "ghg", title: "", year: true, month: true };
const kYear = { ...kBoth, kind: "year", month: false };
const kMonth = { ...kBoth, kind: "month", year: false };
const kNow = new Date(2026, 10, 30, 12).getTime();

addTexts(texts, null);

test("a report has the period of the address as far as its kind has such ones", () => {
  const of = (period: string | null) => [undefined, kBoth, kYear, kMonth].map((kind) => periodFor(kind, period, kNow));
  assert.deepEqual(of(null), ["2026", "2026", "2026", "2026-11"]);
  assert.deepEqual(of("2026"), ["2026", "2026", "2026", "2026-11"]);
  assert.deepEqual(of("2025"), ["2025", "2025", "2025", "2025-12"]);
  assert.deepEqual(of("2025-03"), ["2025-03", "2025-03", "2025", "2025-03"]);
});

test("years and months have neighbours", () => {
  assert.deepEqual([periodsLater("2026", -1), periodsLater("2026-01", -1), periodsLater("2026-12", 1), periodsLater("2026-06", -18)], ["2025", "2025-12", "2027-01", "2024-12"]);
  assert.deepEqual([periodText("2026"), periodText("2026-11")], ["2026", "November 2026"]);
});

test("what may be chosen is what the kind has, and what is shown", () => {
  const months = choices(kMonth, "2001-02", kNow);
  assert.deepEqual([months.years, months.months.slice(0, 2), months.months.at(-1)], [[], ["2026-11", "2026-10"], "2001-02"]);
  const years = choices(kYear, "2026", kNow);
  assert.deepEqual([years.years[0], years.years.at(-1), years.months], ["2026", "2017", []]);
});

test("values have six digits or all before the point, and no exponents", () => {
  assert.deepEqual([0, 61239.4512345, 1234567890.25, 0.000012345678, -12.5, 1e21].map(valueText), ["0", "61,239.5", "1,234,567,890", "0.0000123457", "-12.5", "1,000,000,000,000,000,000,000"]);
});

test("a report is read whatever is in it", () => {
  const report = reportOf({
    title: "T",
    from: "2026-01-01T00:00:00+0100",
    to: "2027-01-01T00:00:00+0100",
    written: "2026-11-30T12:00:00+0100",
    notes: ["a", 7, ""],
    lines: [
      { section: "A", id: "x", label: "X", value: 5, unit: "kWh", how: "measured", coverage: 0.5, factor: 52, factor_unit: "g/kWh", factor_source: "agency", factor_date: "2026-05", formula: "sum(a.b)" },
      { section: "A", id: "y", label: "Y", value: null, how: "measured" },
      { section: "B", id: "z", label: "Z", value: "1", how: "magic" },
      7,
      { section: "A", id: "w", label: "W", value: 0, unit: "1", how: "derived", factor_source: "agency" },
    ],
    sources: [{ what: "table months", sha256: "ab" }, null],
  })!;
  assert.deepEqual(report.sections.map(({ name, lines }) => [name, ...lines.map((line) => `${line.id} ${line.value}${line.unit} ${line.how} ${line.factor}`)]), [
    ["A", "x 5kWh measured 52 g/kWh, agency, 2026-05", "y null missing "],
    ["B", "z null missing "],
    ["A", "w 0 derived agency"],
  ]);
  assert.deepEqual(evidenceOf(report), [{ how: "measured", count: 1 }, { how: "derived", count: 1 }, { how: "missing", count: 2 }]);
  assert.deepEqual([report.days, report.written], ["1 Jan 2026 to 31 Dec 2026", "2026-11-30 12:00:00+0100"]);
  assert.deepEqual([report.notes, report.sources], [["a"], [{ what: "table months", detail: "", sha256: "ab" }]]);
  assert.equal(reportOf(null), null);
  assert.deepEqual([kindsOf([{ kind: "ghg", title: "G", year: true }, { title: "no name" }, 7]), kindsOf("x")], [[{ kind: "ghg", title: "G", year: true, month: false }], []]);
});
