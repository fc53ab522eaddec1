#include "ingest/manager/slurm/sacct.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/time_text.h"
#include "base/utf8.h"

namespace ceems::ingest {
namespace {

constexpr std::size_t kMaxRecordBytes = 1U << 20U;
constexpr std::size_t kDelimiters = kSacctFieldCount - 1;

/// Positions of the fields in kSacctFields.
enum Field : std::size_t {
  kJobId,
  kPartition,
  kQos,
  kAccount,
  kGroup,
  kGid,
  kUser,
  kUid,
  kSubmit,
  kStart,
  kEnd,
  kElapsed,
  kElapsedRaw,
  kExitCode,
  kState,
  kAllocTres,
  kNodeList,
  kJobName,
  kWorkDir,
};

using Fields = std::array<std::string_view, kSacctFieldCount>;

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

/// Where name and working directory part in "name|dir".
std::size_t free_text_boundary(std::string_view text, std::string_view delimiter) {
  if (delimiter == "|") {
    const std::size_t slash = text.rfind("|/");
    if (slash != std::string_view::npos) {
      return slash;
    }
  }
  return text.rfind(delimiter);
}

bool split_fields(std::string_view record, std::string_view delimiter, Fields& fields) {
  for (std::size_t i = kJobId; i < kJobName; ++i) {
    const std::size_t end = record.find(delimiter);
    if (end == std::string_view::npos) {
      return false;
    }
    fields.at(i) = record.substr(0, end);
    record.remove_prefix(end + delimiter.size());
  }
  const std::size_t boundary = free_text_boundary(record, delimiter);
  if (boundary == std::string_view::npos) {
    return false;
  }
  fields[kJobName] = record.substr(0, boundary);
  fields[kWorkDir] = record.substr(boundary + delimiter.size());
  return true;
}

/// With an offset or, where SLURM cuts it off (22.05 prints 19 characters whatever the format
/// says), in UTC, the zone that the command was given.
std::optional<std::int64_t> parse_time(std::string_view text) {
  constexpr std::size_t kWithoutOffset = 19;
  std::string full(text);
  if (full.size() == kWithoutOffset) {
    full.append("+0000");
  }
  return parse_localz(full);
}

void insert_sorted(std::vector<std::string>& list, std::string_view text) {
  const auto at = std::ranges::lower_bound(list, text);
  if (at == list.end() || *at != text) {
    list.emplace(at, text);
  }
}

}  // namespace

Result<std::optional<SlurmJob>> parse_sacct_record(std::string_view record,
                                                   std::string_view delimiter,
                                                   MemoryRule rule) {
  Fields fields;
  if (!split_fields(record, delimiter, fields)) {
    return fail(ErrorCode::kParse, "expected {} fields, got {}: '{}'", kSacctFieldCount,
                count_of(record, delimiter) + 1, printable(record, 100));
  }
  const std::string_view id = fields[kJobId];
  if (id.empty() ||
      id.find_first_not_of("0123456789.abcdefghijklmnopqrstuvwxyz_+") != std::string_view::npos ||
      id.front() < '0' || id.front() > '9') {
    return fail(ErrorCode::kParse, "not a job id: '{}'", printable(id, 40));
  }
  if (id.find('.') != std::string_view::npos || fields[kNodeList] == "None assigned") {
    return std::nullopt;
  }
  SlurmJob job;
  job.id = id;
  job.partition = fields[kPartition];
  job.qos = fields[kQos];
  job.account = fields[kAccount];
  job.group = fields[kGroup];
  job.gid = parse_int<std::int64_t>(fields[kGid]).value_or(0);
  job.user = fields[kUser];
  job.uid = parse_int<std::int64_t>(fields[kUid]).value_or(0);
  job.submit_text = fields[kSubmit];
  job.start_text = fields[kStart];
  job.end_text = fields[kEnd];
  job.submit_ms = parse_time(fields[kSubmit]);
  job.start_ms = parse_time(fields[kStart]);
  job.end_ms = parse_time(fields[kEnd]);
  job.elapsed = fields[kElapsed];
  job.exit_code = fields[kExitCode];
  job.state = fields[kState];
  job.allocation = parse_alloc_tres(fields[kAllocTres], rule);
  job.node_list = fields[kNodeList];
  job.name = fields[kJobName];
  job.work_dir = fields[kWorkDir];
  return job;
}

void SacctReader::add_line(std::string_view line) {
  if (!decided_) {
    if (line.empty()) {
      return;
    }
    joins_lines_ = line.find(delimiter_) != std::string_view::npos;
    decided_ = joins_lines_ || count_of(line, "|") >= kDelimiters;
    if (!joins_lines_ && decided_) {
      delimiter_ = "|";
    }
  }
  if (!joins_lines_) {
    if (!line.empty()) {
      record_ = line;
      end_record();
    }
    return;
  }
  const std::size_t in_line = count_of(line, delimiter_);
  // A whole record begins, or the one at hand has all its fields and this belongs to the next.
  if (in_line >= kDelimiters || (record_delimiters_ >= kDelimiters && in_line > 0) ||
      record_.size() + line.size() > kMaxRecordBytes) {
    end_record();
  }
  if (!record_.empty()) {
    record_ += '\n';
  }
  record_ += line;
  record_delimiters_ += in_line;
}

void SacctReader::end_record() {
  record_delimiters_ = 0;
  if (record_.empty()) {
    return;
  }
  auto job = parse_sacct_record(record_, delimiter_, rule_);
  record_.clear();
  if (!job) {
    if (malformed_++ == 0) {
      first_problem_ = job.error().message;
    }
    return;
  }
  ++recognized_;
  if (const auto& known = *job; known.has_value()) {
    job_(*known);
  }
}

Result<> SacctReader::finish() {
  end_record();
  if (recognized_ == 0 && malformed_ > 0) {
    return fail(ErrorCode::kParse, "output of sacct: {}", first_problem_);
  }
  return {};
}

void Associations::add_line(std::string_view line) {
  const std::string_view account = take_until(line, '|');
  add(account, take_until(line, '|'));
}

void Associations::add(std::string_view account, std::string_view user) {
  if (account.empty() || user.empty() || account == "root" || user == "root") {
    return;
  }
  const std::string account_text = clean_text(account);
  const std::string user_text = clean_text(user);
  insert_sorted(accounts_of_users_[user_text], account_text);
  insert_sorted(users_of_accounts_[account_text], user_text);
}

}  // namespace ceems::ingest
