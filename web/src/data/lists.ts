import { ApiError, type Api, type View } from "./api";
import type { Heat, ListSource, Page, Summary } from "./list";
import { LocalList } from "./locallist";
import { ServerList } from "./serverlist";
import type { HeatAxis, ListState } from "./liststate";

/** The lists of the server, or our own if it has none. */
export class Lists implements ListSource {
  private source: ListSource;

  constructor(private readonly api: Api) {
    this.source = new ServerList(api);
  }

  page(list: ListState, view: View, size: number, fresh: boolean, signal: AbortSignal, shown: readonly string[] = []): Promise<Page> {
    return this.either((source) => source.page(list, view, size, fresh, signal, shown));
  }

  summary(list: ListState, view: View, signal: AbortSignal): Promise<Summary> {
    return this.either((source) => source.summary(list, view, signal));
  }

  heat(list: ListState, view: View, axis: HeatAxis, signal: AbortSignal): Promise<Heat | null> {
    return this.either((source) => source.heat(list, view, axis, signal));
  }

  file(list: ListState, view: View): Promise<Blob> {
    return this.either((source) => source.file(list, view));
  }

  private async either<T>(ask: (source: ListSource) => Promise<T>): Promise<T> {
    try {
      return await ask(this.source);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      // Page and summary may both find out.
      if (this.source instanceof ServerList) this.source = new LocalList(this.api);
      return ask(this.source);
    }
  }
}
