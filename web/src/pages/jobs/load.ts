// The list of units with its texts, which it needs from the start.

import { loadJobsTexts } from "../../text/jobstexts";
import JobsPage from "./JobsPage.svelte";

export async function loadJobsPage(): Promise<{ default: typeof JobsPage }> {
  await loadJobsTexts();
  return { default: JobsPage };
}
