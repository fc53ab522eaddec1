// The part of a unit's life that the charts show.

export interface Span {
  from: number; // ms
  to: number;
}

const kMinMs = 10_000;

/** The span scaled by a factor around a moment, inside the whole; null: all of it. */
export function zoom(span: Span, whole: Span, factor: number, centre = (span.from + span.to) / 2): Span | null {
  const length = Math.max(kMinMs, (span.to - span.from) * factor);
  // Nearly all is all: the whole of a unit that runs has grown since it was halved.
  if (length >= 0.95 * (whole.to - whole.from)) return null;
  const share = (centre - span.from) / Math.max(1, span.to - span.from);
  const from = Math.min(Math.max(whole.from, centre - share * length), whole.to - length);
  return { from: Math.round(from), to: Math.round(from + length) };
}

/** A span that was drawn or came from an address, if it shows something of the whole. */
export function within(span: Span | null, whole: Span): Span | null {
  if (span === null) return null;
  const from = Math.max(span.from, whole.from);
  const to = Math.min(span.to, whole.to);
  if (to - from < Math.min(kMinMs, whole.to - whole.from)) return null;
  return from <= whole.from && to >= whole.to ? null : { from, to };
}
