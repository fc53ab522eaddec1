#include "mail/sender.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "crypto/digest.h"
#include "mail/address.h"
#include "mail/message.h"

namespace ceems::mail {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kDayMs = std::int64_t{24} * 3600 * 1000;
constexpr milliseconds kRound{2000};
constexpr std::int64_t kAskAgainMs = 15'000;  // for a report
constexpr std::int64_t kCleaningMs = 3600'000;
/// How long slurmctld may take for a mail after the end of a job.
constexpr std::int64_t kEndToMailMs = 600'000;
constexpr std::size_t kMailsAtOnce = 200;
constexpr std::int64_t kMaxTries = 12;
constexpr std::int64_t kFirstRetryMs = 60'000;
constexpr std::int64_t kLastRetryMs = 3600'000;
constexpr std::int64_t kMailsKeptMs = 31 * kDayMs;

JobNames names_of(const SpoolMail& mail, std::string cluster) {
  return {.cluster = std::move(cluster),
          .id = mail.variable("SLURM_JOB_ID"),
          .name = mail.variable("SLURM_JOB_NAME"),
          .user = mail.variable("SLURM_JOB_USER"),
          .state = state_of(mail),
          .array = mail.variable("SLURM_ARRAY_JOB_ID")};
}

/// Null if nothing is known.
const report::Report* report_in(const std::optional<KnownReport>& known) {
  return known ? &known->report : nullptr;
}

std::vector<std::string> ids_of_mails(const std::vector<store::OutgoingMail>& mails) {
  std::vector<std::string> ids;
  ids.reserve(mails.size());
  for (const auto& mail : mails) {
    ids.push_back(mail.id);
  }
  return ids;
}

}  // namespace

struct Sender::Counters {
  explicit Counters(metrics::Registry& registry)
      : mails(registry.counters("ceems_mail_total", "Mails, by what became of them.", {"state"})),
        queued(registry.gauge("ceems_mail_queued", "Mails that wait.")),
        dry(registry.gauge("ceems_mail_dry_run_people",
                           "People who would have got reports in the last 30 days.")) {}
  metrics::Family<metrics::Counter>& mails;
  metrics::Gauge& queued;
  metrics::Gauge& dry;
};

Sender::Sender(SenderSetup setup,
               ReportSource& reports,
               Transport& transport,
               metrics::Registry& registry,
               const Clock& clock)
    : setup_(std::move(setup)),
      reports_(reports),
      transport_(transport),
      clock_(clock),
      counters_(std::make_unique<Counters>(registry)),
      intake_(setup_.options, setup_.clusters, registry, counters_->queued, clock) {}

Sender::~Sender() = default;

bool Sender::dry() const {
  return setup_.options.mode != Mode::kEnabled ||
         clock_.now_ms() < started_ms_ + setup_.options.dry_run_days * kDayMs;
}

bool Sender::months_are_dry() const {
  return setup_.options.monthly != Mode::kEnabled ||
         clock_.now_ms() < months_started_ms_ + setup_.options.dry_run_days * kDayMs;
}

bool Sender::budgets_are_dry() const {
  return setup_.options.budgets != Mode::kEnabled ||
         clock_.now_ms() < budgets_started_ms_ + setup_.options.dry_run_days * kDayMs;
}

bool Sender::is_dry(std::string_view kind) const {
  if (kind == kMonthMail) {
    return months_are_dry();
  }
  return kind == kBudgetMail ? budgets_are_dry() : kind != kPlainMail && dry();
}

void Sender::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto done = work(stop);
    const std::string problem = done ? "" : done.error().message;
    if (problem != last_problem_ && !problem.empty()) {
      log::warn("mails wait", {{"err", problem}});
    }
    last_problem_ = problem;
    sleep_for(kRound, stop);
  }
}

Result<> Sender::work(const std::stop_token& stop) {
  passed_.reset();
  CEEMS_TRY(open());
  CEEMS_TRY(intake_.take(*outbox_, dry(), stop));
  CEEMS_TRY(queue_months());
  CEEMS_TRY(queue_budgets());
  CEEMS_TRY(send_due(stop));
  return keep_house();
}

Result<> Sender::open() {
  if (!outbox_) {
    CEEMS_TRY(outbox, setup_.open_outbox());
    outbox_ = std::move(outbox);
  }
  if (started_ms_ == 0) {
    CEEMS_TRY(interrupted, outbox_->end_interrupted(clock_.now_ms()));
    for (const std::string& id : interrupted) {
      log::warn("a mail was being handed over when the program ended; it is not sent again",
                {{"mail", id}});
      counters_->mails.with({"unknown"}).add();
    }
    std::int64_t first = clock_.now_ms();
    if (setup_.options.mode == Mode::kEnabled) {
      CEEMS_TRY(stored, outbox_->first_started(store::kReportsStarted, first));
      first = stored;
    }
    if (setup_.options.monthly == Mode::kEnabled) {
      CEEMS_TRY(months, outbox_->first_started(store::kDigestsStarted, clock_.now_ms()));
      months_started_ms_ = months;
    }
    if (setup_.options.budgets == Mode::kEnabled) {
      CEEMS_TRY(budgets, outbox_->first_started(store::kBudgetsStarted, clock_.now_ms()));
      budgets_started_ms_ = budgets;
    }
    started_ms_ = std::max<std::int64_t>(first, 1);
    if (dry()) {
      log::info(
          "reports are not sent by mail yet: dry run",
          {{"days", setup_.options.mode == Mode::kEnabled ? setup_.options.dry_run_days : 0}});
    }
  }
  return {};
}

Result<> Sender::send_due(const std::stop_token& stop) {
  std::set<std::string> digests;
  while (!stop.stop_requested()) {
    CEEMS_TRY(mails, outbox_->due(clock_.now_ms(), kMailsAtOnce));
    if (mails.empty()) {
      return {};
    }
    for (const Mail& mail : mails) {
      if (stop.stop_requested()) {
        return {};
      }
      Result<> done;
      if (mail.kind == kPlainMail) {
        done = send_plain(mail, stop);
      } else if (mail.kind == kMonthMail) {
        done = send_month(mail, stop);
      } else if (mail.kind == kBudgetMail) {
        done = send_budget(mail, stop);
      } else if (mail.digest.empty()) {
        done = send_job(mail, stop);
      } else if (digests.insert(mail.digest).second) {
        done = send_digest(mail.digest, stop);
      }
      if (!done) {
        return done;
      }
    }
    digests.clear();
  }
  return {};
}

Result<LetterOptions> Sender::letter_options(const std::string& user) {
  CEEMS_TRY(muted, outbox_->muted(user, clock_.now_ms()));
  return LetterOptions{.language = setup_.options.language,
                       .help_url = setup_.help_url,
                       .mute_url = setup_.mute_url,
                       .muted = std::move(muted)};
}

Result<> Sender::send_plain(const Mail& mail, const std::stop_token& stop) {
  const auto original = parse_spool_mail(mail.body);
  if (!original) {
    return outbox_->finish({mail.id}, store::MailState::kRefused, clock_.now_ms());
  }
  return deliver({mail}, {.subject = original->subject, .text = original->body}, "", stop);
}

Result<> Sender::send_job(const Mail& mail, const std::stop_token& stop) {
  const auto original = parse_spool_mail(mail.body);
  if (!original) {
    return outbox_->finish({mail.id}, store::MailState::kRefused, clock_.now_ms());
  }
  if (is_array_summary(*original)) {
    return send_summary(mail, *original, stop);
  }
  JobNames job = names_of(*original, cluster_of(*original, setup_.clusters));
  // SLURM sends the mail of a heterogeneous job for its first part, whose id is that of the job.
  if (Group parts = group_of(job, job.id + "+"); parts.jobs.size() > 1 && parts.ran) {
    job.array = job.id;
    job.heterogeneous = true;
    const bool complete = parts.complete;
    return send_group(mail, *original, job, std::move(parts), complete, stop);
  }
  const auto known = report_for(job, {}, job.id, original->at_ms - kEndToMailMs);
  const std::int64_t last_ms = last_wait_ms(mail);
  const bool final = known && known->final;
  if (!final && clock_.now_ms() < last_ms) {
    return outbox_->postpone({mail.id}, std::min(clock_.now_ms() + kAskAgainMs, last_ms), false);
  }
  CEEMS_TRY(options, letter_options(job.user));
  return deliver({mail}, job_letter(job, report_in(known), final, options), kAllMails, stop);
}

std::int64_t Sender::last_wait_ms(const Mail& mail) const {
  return mail.received_ms + setup_.options.max_wait.count();
}

Result<> Sender::send_original(const Mail& mail,
                               const SpoolMail& original,
                               std::string_view why,
                               const std::stop_token& stop) {
  if (!is_dry(mail.kind)) {
    log_passed_on(original, why);
  }
  return deliver({mail}, {.subject = original.subject, .text = original.body}, "", stop);
}

Result<> Sender::send_summary(const Mail& mail,
                              const SpoolMail& original,
                              const std::stop_token& stop) {
  const JobNames job = names_of(original, cluster_of(original, setup_.clusters));
  Group group = group_of(job, job.array + "_");
  const auto count = parse_int<std::size_t>(original.variable("SLURM_ARRAY_TASK_COUNT"));
  const bool complete =
      group.complete && group.jobs.size() >= std::max<std::size_t>(count.value_or(1), 1);
  // SLURM knows how many there are, also of those that are not in the database.
  const std::size_t unknown = count && *count > group.jobs.size() ? *count - group.jobs.size() : 0;
  if (group.ran && unknown > 0) {
    group.sums.states["UNKNOWN"] += unknown;
  }
  return send_group(mail, original, job, std::move(group), complete, stop);
}

Sender::Group Sender::group_of(const JobNames& job, const std::string& prefix) {
  const auto tasks = reports_.tasks_of(job.cluster, job.user, prefix);
  Group group{.other = job.id, .complete = tasks.has_value()};
  for (const ArrayTask& task : tasks ? *tasks : std::vector<ArrayTask>()) {
    group.jobs.push_back(task.job);
    group.sums.states[task.state] += 1;
    group.ran = group.ran || task.ran;
    group.complete = group.complete && task.ended;
    if (task.ran && task.ended && task.state != "COMPLETED") {
      group.other = task.job;
    }
  }
  return group;
}

Result<> Sender::send_group(const Mail& mail,
                            const SpoolMail& original,
                            const JobNames& job,
                            Group group,
                            bool complete,
                            const std::stop_token& stop) {
  const auto known =
      group.ran ? report_for(job, group.jobs, group.other, 0) : std::optional<KnownReport>();
  const std::int64_t last_ms = last_wait_ms(mail);
  if ((!complete || (group.ran && (!known || !known->final))) && clock_.now_ms() < last_ms) {
    return outbox_->postpone({mail.id}, std::min(clock_.now_ms() + kAskAgainMs, last_ms), false);
  }
  if (!group.ran) {
    return send_original(
        mail, original,
        group.jobs.empty() ? "no task of the array is known" : "the array never ran", stop);
  }
  add_energy(job, group.jobs, group.sums);
  CEEMS_TRY(options, letter_options(job.user));
  return deliver({mail}, array_letter(job, group.sums, report_in(known), options), kAllMails, stop);
}

std::optional<KnownReport> Sender::report_for(const JobNames& job,
                                              const std::vector<std::string>& jobs,
                                              const std::string& otherwise,
                                              std::int64_t ended_after_ms) {
  const auto worst =
      jobs.empty() ? Result<std::string>() : reports_.worst_of(job.cluster, job.user, jobs);
  const std::string& chosen = worst && !worst->empty() ? *worst : otherwise;
  auto report = reports_.report(job.cluster, job.user, chosen, ended_after_ms);
  return report ? std::move(*report) : std::nullopt;
}

void Sender::add_energy(const JobNames& job,
                        const std::vector<std::string>& jobs,
                        ArraySums& sums) {
  if (auto added = reports_.add_energy(job.cluster, job.user, jobs, sums); !added) {
    log::debug("the energy of an array is not known", {{"err", added.error().message}});
  }
}

Result<> Sender::send_digest(const std::string& digest, const std::stop_token& stop) {
  CEEMS_TRY(mails, outbox_->of_digest(digest));
  if (mails.empty()) {
    return {};
  }
  std::int64_t first = mails.front().received_ms;
  std::int64_t last = first;
  std::int64_t retry = 0;
  for (const Mail& mail : mails) {
    first = std::min(first, mail.received_ms);
    last = std::max(last, mail.received_ms);
    retry = mail.tries > 0 ? std::max(retry, mail.due_ms) : retry;
  }
  const std::int64_t ready = std::max(std::min(last + setup_.options.digest_quiet.count(),
                                               first + setup_.options.digest_max.count()),
                                      retry);
  if (clock_.now_ms() < ready) {
    return outbox_->postpone(ids_of_mails(mails), ready, false);
  }
  ArraySums sums;
  std::vector<std::string> jobs;
  std::optional<SpoolMail> newest;
  for (const Mail& mail : mails) {
    auto original = parse_spool_mail(mail.body);
    if (original) {
      sums.states[state_of(*original)] += 1;
      jobs.push_back(original->variable("SLURM_JOB_ID"));
      newest = std::move(*original);
    }
  }
  if (!newest) {
    return outbox_->finish(ids_of_mails(mails), store::MailState::kRefused, clock_.now_ms());
  }
  const JobNames job = names_of(*newest, cluster_of(*newest, setup_.clusters));
  std::ranges::sort(jobs);
  jobs.erase(std::ranges::unique(jobs).begin(), jobs.end());
  add_energy(job, jobs, sums);
  const auto known = report_for(job, jobs, job.id, 0);
  CEEMS_TRY(options, letter_options(job.user));
  return deliver(mails, array_letter(job, sums, report_in(known), options), kAllMails, stop);
}

Result<> Sender::drop(const Mail& mail, bool muted) {
  if (muted) {
    counters_->mails.with({"muted"}).add();
  }
  return outbox_->finish({mail.id}, store::MailState::kRefused, clock_.now_ms());
}

void Sender::keep_rate(const std::stop_token& stop) {
  const auto now = clock_.steady_now();
  if (now < next_send_) {
    sleep_for(std::chrono::ceil<milliseconds>(next_send_ - now), stop);
  }
  next_send_ = std::max(clock_.steady_now(), next_send_) +
               std::chrono::duration_cast<Clock::SteadyTime::duration>(
                   std::chrono::duration<double>(1 / setup_.options.rate));
}

Result<> Sender::deliver(const std::vector<Mail>& mails,
                         const Letter& letter,
                         std::string_view muted_by,
                         const std::stop_token& stop) {
  const std::vector<std::string> ids = ids_of_mails(mails);
  const Mail& first = mails.front();
  if (is_dry(first.kind)) {
    counters_->mails.with({"dry"}).add();
    return outbox_->finish(ids, store::MailState::kDry, clock_.now_ms());
  }
  const auto to = addresses_of(first.recipient, setup_.options.domain);
  if (!to) {
    return outbox_->finish(ids, store::MailState::kRefused, clock_.now_ms());
  }
  const std::string domain = setup_.options.from.substr(setup_.options.from.rfind('@') + 1);
  constexpr std::size_t kIdBytes = 16;
  Message message{
      .from_name = "CEEMS",
      .from = setup_.options.from,
      .to = *to,
      .subject = letter.subject,
      .text = letter.text,
      .html = letter.html,
      // The same whenever the mail is tried.
      .id = fmt::format("ceems.{}@{}", crypto::hex(crypto::sha256(first.id).substr(0, kIdBytes)),
                        domain),
      .date_ms = first.received_ms};
  if (!muted_by.empty() && setup_.mute_url) {
    message.unsubscribe = setup_.mute_url(first.username, std::string(muted_by));
    message.one_click = message.unsubscribe.starts_with("https:");
  }
  keep_rate(stop);
  if (stop.stop_requested()) {
    return {};
  }
  Result<> handing;
  const auto answer = transport_.send(
      message.from, message.to, to_message(message),
      [&] {
        const auto handed = outbox_->hand_over(ids);
        handing = handed ? Result<>() : fail(handed.error());
        return handed && *handed;
      },
      stop);
  if (!handing) {
    return handing;
  }
  return note_outcome(mails, ids, letter, answer);
}

Result<> Sender::note_outcome(const std::vector<Mail>& mails,
                              const std::vector<std::string>& ids,
                              const Letter& letter,
                              const net::MailAnswer& answer) {
  using net::MailOutcome;
  const std::string& user = mails.front().username;
  std::int64_t tries = 0;
  for (const Mail& mail : mails) {
    tries = std::max(tries, mail.tries);
  }
  auto state = store::MailState::kUnknown;
  switch (answer.outcome) {
    case MailOutcome::kSent:
      state = store::MailState::kSent;
      break;
    case MailOutcome::kTemporary:
      if (tries + 1 < kMaxTries) {
        const std::int64_t pause =
            std::min(kFirstRetryMs << std::min<std::int64_t>(tries, 10), kLastRetryMs);
        log::info("a mail is tried again later", {{"mail", ids.front()}, {"err", answer.problem}});
        counters_->mails.with({"retried"}).add();
        return outbox_->postpone(ids, clock_.now_ms() + pause, true);
      }
      state = store::MailState::kRefused;
      break;
    case MailOutcome::kRefused:
      state = store::MailState::kRefused;
      break;
    case MailOutcome::kUnknown:
      break;
  }
  if (state != store::MailState::kSent) {
    log::warn("a mail was not sent",
              {{"mail", ids.front()}, {"state", to_string(state)}, {"err", answer.problem}});
  }
  counters_->mails.with({to_string(state)}).add();
  CEEMS_TRY(outbox_->finish(ids, state, clock_.now_ms()));
  return state == store::MailState::kSent ? outbox_->note_told(user, letter.rules, clock_.now_ms())
                                          : Result<>();
}

Result<> Sender::keep_house() {
  CEEMS_TRY(queued, outbox_->queued());
  counters_->queued.set(static_cast<double>(queued));
  const std::int64_t now = clock_.now_ms();
  if (now < next_cleaning_ms_) {
    return {};
  }
  next_cleaning_ms_ = now + kCleaningMs;
  CEEMS_TRY(people, outbox_->dry_people(now - 30 * kDayMs));
  counters_->dry.set(static_cast<double>(people));
  const bool months = setup_.options.monthly != Mode::kDisabled && months_are_dry();
  const bool budgets = setup_.options.budgets != Mode::kDisabled && budgets_are_dry();
  if (dry() || months || budgets) {
    log::info("dry run of mails: would have told people in the last 30 days", {{"people", people}});
  }
  return outbox_->purge(now - kMailsKeptMs, now - setup_.options.retention.count());
}

}  // namespace ceems::mail
