/** The moment that charts with one time axis point at together; null: none. */
export class Cursor {
  time = $state<number | null>(null);
}
