// How pages load what they show.

import { onMount, untrack } from "svelte";

import { failureOf, type ApiError } from "../data/api";
import { startPoll, type Poll } from "../data/poll";

export interface Loading extends Omit<Poll, "stop"> {
  /** As now(), after a pause, unless another one begins before. */
  soon(ms: number): void;
}

/** Loads while the page is there: at once, and every so often. When `question` changes, `onother` is called instead of waiting for that. */
export function loading(load: (signal: AbortSignal) => Promise<boolean>, everyMs: number, question = () => "", onother = (again: Loading) => again.now()): Loading {
  let poll: Poll | undefined;
  let asked = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const handle: Loading = {
    now: () => poll?.now(),
    setActive: (active) => poll?.setActive(active),
    soon(ms) {
      clearTimeout(timer);
      timer = setTimeout(() => poll?.now(), ms);
    },
  };
  onMount(() => {
    asked = question();
    poll = startPoll(load, everyMs);
    return () => {
      clearTimeout(timer);
      poll?.stop();
    };
  });
  $effect(() => {
    const wanted = question();
    if (wanted === asked || !poll) return;
    asked = wanted;
    untrack(() => onother(handle));
  });
  return handle;
}

/** One question at a time: the next one gives up the one before, and so does leaving the page. */
export class Asking {
  problem = $state.raw<ApiError | null>(null);
  older = $state(false); // the server has no such answers
  #running: AbortController | undefined;

  /** `failure`: turns what was thrown into `problem`. */
  constructor(private readonly failure = failureOf) {
    onMount(() => () => this.#running?.abort());
  }

  async ask(load: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.#running?.abort();
    const { signal } = (this.#running = new AbortController());
    this.problem = null;
    this.older = false;
    try {
      await load(signal);
    } catch (error) {
      if (signal.aborted) return;
      this.problem = this.failure(error);
      this.older = this.problem.status === 404;
    }
  }
}
