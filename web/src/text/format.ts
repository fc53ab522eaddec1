// Formats numbers, amounts and times as the language of the page does.

export const kNone = "–";

// To make one takes longer than to format a hundred values.
const numbers = new Map<Intl.NumberFormatOptions, Intl.NumberFormat>();
const dates = new Map<string, Intl.DateTimeFormat>();
let name = "en-GB";

/** The locale of numbers and dates. */
export function locale(): string {
  return name;
}

export function setLocale(to: string): void {
  name = to;
  numbers.clear();
  dates.clear();
}

const kPlain: Intl.NumberFormatOptions = {};
const kWhole: Intl.NumberFormatOptions = { maximumFractionDigits: 0 };
const kOneDecimal: Intl.NumberFormatOptions = { maximumFractionDigits: 1 };
const kCents: Intl.NumberFormatOptions = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
const kTwoDigits: Intl.NumberFormatOptions = { maximumSignificantDigits: 2 };
const kThreeDigits: Intl.NumberFormatOptions = { maximumSignificantDigits: 3 };

/** `options`: one of the above, which are told apart by what they are and not by what they hold. */
function formatter(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  let found = numbers.get(options);
  if (!found) {
    found = new Intl.NumberFormat(name, options);
    numbers.set(options, found);
  }
  return found;
}

/** A moment as Intl.DateTimeFormat writes it, in the browser's zone unless the options name one. */
export function date(ms: number, options: Intl.DateTimeFormatOptions): string {
  if (!Number.isFinite(ms)) return kNone;
  const key = JSON.stringify(options);
  let found = dates.get(key);
  if (!found) {
    found = new Intl.DateTimeFormat(name, options);
    dates.set(key, found);
  }
  return found.format(ms);
}

/** Three significant digits, never in exponent form: 0.0123, 1.23, 12.3, 123, 1,230. */
export function number3(value: number): string {
  if (!Number.isFinite(value)) return kNone;
  const size = Math.abs(value);
  if (size >= 1000) return formatter(kWhole).format(value);
  return formatter(kThreeDigits).format(value);
}

/** The first step whose size the value reaches, otherwise the last. Steps go from large to small. */
function scaled(value: number, steps: readonly (readonly [size: number, unit: string])[]): string {
  if (!Number.isFinite(value)) return kNone;
  // Compared after rounding to three digits, so that 999.9 becomes 1 of the next unit and not "1,000".
  const [step, unit] = steps.find(([s]) => Math.abs(Number((value / s).toPrecision(3))) >= 1) ?? steps.at(-1)!;
  return `${number3(value / step)} ${unit}`;
}

/** The text of a cell whose value does not wrap, while the lines below it may. */
export function lines(text: string): string {
  const [value = "", ...notes] = text.split("\n");
  return [value.replaceAll(" ", "\u00a0"), ...notes].join("\n");
}

export const kJoulesPerKwh = 3.6e6;
const kBytes = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// Energy, emissions, bytes, percentages, money and durations are written as the server writes them: tests/formats.json.

/** Energy from kWh: Wh below 0.1 kWh, and joules below 1 Wh, where Wh would be a string of zeros. */
export function energy(kwh: number): string {
  if (kwh === 0) return "0 J";
  if (Math.abs(kwh) < 0.9995e-3) return scaled(kwh * kJoulesPerKwh, [[1, "J"], [1e-3, "mJ"]]);
  if (Math.abs(kwh) < 0.09995) return scaled(kwh, [[1e-3, "Wh"]]);
  return scaled(kwh, [[1e6, "GWh"], [1e3, "MWh"], [1, "kWh"]]);
}

/** Mass of greenhouse gas, from grams of CO2 equivalent. */
export function emissions(grams: number): string {
  if (grams === 0) return "0 g";
  return scaled(grams, [[1e6, "t"], [1e3, "kg"], [1, "g"], [1e-3, "mg"], [1e-6, "µg"]]);
}

type Text = (value: number) => string;

/** How to write the values of a column: all in the unit that the largest calls for, so that they can be compared at a glance. A sum of a great
 * many of them is written as it would be alone. */
function ofColumn(values: readonly (number | null | undefined)[], steps: readonly (readonly [least: number, size: number, unit: string])[], alone: Text): Text {
  const most = Math.max(0, ...values.map((value) => Math.abs(value ?? 0)));
  const [, size, unit] = steps.find(([least]) => most >= least)!;
  return (value) => {
    const amount = Math.abs(value) / size;
    if (!(amount < 99_999.5)) return alone(value);
    const text = amount > 0 && amount < 0.01 ? `< ${number3(0.01)}` : number3(Math.round(1000 * amount) / 1000);
    return `${value < 0 ? "−" : ""}${text} ${unit}`;
  };
}

/** The bars of a chart, which are alike: from kWh. */
export const barEnergies = (values: readonly (number | null | undefined)[]): Text => ofColumn(values, [[999_500, 1e6, "GWh"], [999.5, 1e3, "MWh"], [0.9995, 1, "kWh"], [0, 1e-3, "Wh"]], energy);

/** From kWh. */
export const energies = (values: readonly (number | null | undefined)[]): Text => ofColumn(values, [[1e7, 1e6, "GWh"], [1e4, 1e3, "MWh"], [0.9995, 1, "kWh"], [0, 1e-3, "Wh"]], energy);

/** From grams of CO2 equivalent. */
export const masses = (values: readonly (number | null | undefined)[]): Text => ofColumn(values, [[1e7, 1e6, "t"], [1e4, 1e3, "kg"], [0.1, 1, "g"], [0, 1e-3, "mg"]], emissions);

/** From bytes, in powers of 1024. */
export const sizes = (values: readonly (number | null | undefined)[]): Text =>
  ofColumn(values, kBytes.map((unit, i) => [i && 1024 ** i, 1024 ** i, unit] as const).reverse(), bytes);

export function power(watts: number): string {
  if (watts === 0) return "0 W";
  return scaled(watts, [[1e6, "MW"], [1e3, "kW"], [1, "W"], [1e-3, "mW"]]);
}

/** Powers of 1024; one decimal below 100. */
export function bytes(count: number): string {
  if (!Number.isFinite(count)) return kNone;
  const power = Math.max(0, kBytes.findIndex((_, i) => i + 1 === kBytes.length || Math.abs(count) / 1024 ** i < 1023.95));
  const value = count / 1024 ** power;
  return `${formatter(power > 0 && value < 99.95 ? kOneDecimal : kWhole).format(value)} ${kBytes[power]}`;
}

/** A value in percent: 0 to 100, or more if a unit used more than it was given. Nearly all is not all. */
export function percent(value: number): string {
  if (!Number.isFinite(value)) return kNone;
  if (value > 0 && value < 0.1) return `< ${formatter(kOneDecimal).format(0.1)} %`;
  return `${formatter(value < 10 || (value >= 99.5 && value < 99.95) ? kOneDecimal : kWhole).format(value)} %`;
}

/** "EUR 1,234.50", in German and French "1.234,50 EUR". */
export function money(amount: number, currency: string): string {
  if (!Number.isFinite(amount)) return kNone;
  const text = formatter(kCents).format(amount);
  return (name.startsWith("en") ? `${currency} ${text}` : `${text} ${currency}`).trim();
}

const two = (n: number) => String(n).padStart(2, "0");

const kMinute = 60;
const kHour = 3600;
const kDay = 86400;

/** The two largest parts of a duration, without a second of zero: 0.42 s, 7 s, 3 min 05 s, 2 h 09 min, 2 h, 4 d 3 h (in French: 4 j 3 h). */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return kNone;
  if (seconds < 10 && !Number.isInteger(seconds)) {
    return `${formatter(kTwoDigits).format(seconds)} s`;
  }
  const whole = Math.round(seconds);
  if (whole < kMinute) return `${whole} s`;
  const parts = (first: string, second: number, text: string) => (second ? `${first} ${text}` : first);
  if (whole < kHour) return parts(`${Math.floor(whole / kMinute)} min`, whole % kMinute, `${two(whole % kMinute)} s`);
  const minutes = Math.floor((whole % kHour) / kMinute);
  if (whole < kDay) return parts(`${Math.floor(whole / kHour)} h`, minutes, `${two(minutes)} min`);
  const hours = Math.floor((whole % kDay) / kHour);
  return parts(`${Math.floor(whole / kDay)} ${name.startsWith("fr") ? "j" : "d"}`, hours, `${hours} h`);
}

/** A time in the browser's zone, without the date if it is today and without the year if it is this year. */
export function moment(ms: number, now: number): string {
  if (!Number.isFinite(ms)) return kNone;
  const at = new Date(ms);
  const today = new Date(now);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (at.toDateString() === today.toDateString()) return `${time}:${two(at.getSeconds())}`;
  const year = at.getFullYear();
  return `${date(ms, { day: "numeric", month: "short" })}${year === today.getFullYear() ? "" : ` ${year}`}, ${time}`;
}

/** The end of a span: without the date if it is that of its beginning. */
export function momentAfter(ms: number, begin: number, now: number): string {
  const text = moment(ms, now);
  return new Date(ms).toDateString() === new Date(begin).toDateString() ? text.replace(/^.*, /, "") : text;
}

/** The full time with the name of the zone: Mon, 5 Jan 2026, 09:03:05 UTC. */
export function momentInFull(ms: number): string {
  return date(ms, { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZoneName: "short" });
}

/** 1,204 */
export function whole(n: number): string {
  return formatter(kWhole).format(n);
}

/** "1 unit", "1,204 units". */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${formatter(kPlain).format(n)} ${n === 1 ? one : many}`;
}
