#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::store {

// The tables ceems_outbox, mails to be sent, and ceems_contacts, which users were notified of what
// (docs/mail.md). Times are epoch milliseconds.

/// A mail that is to be sent, or a part of a digest.
struct OutgoingMail {
  std::string id = {};        ///< unique for ever, so that a mail is taken once
  std::string kind = {};      ///< "job", "plain", "month" or "budget"
  std::string username = {};  ///< whose job it is about; may be empty
  std::string recipient = {};
  std::string digest = {};  ///< those with the same text go into one mail; empty: a mail of its own
  std::string body = {};    ///< what the mail is made from; removed when it is done
  std::int64_t received_ms = 0;
  std::int64_t due_ms = 0;  ///< not looked at before
  std::int64_t tries = 0;   ///< that failed
};

/// What became of a mail.
enum class MailState {
  kQueued,
  kHanded,  ///< being handed to the mail server
  kSent,
  kRefused,  ///< for good, or too often
  kUnknown,  ///< the program or the connection ended while it was handed over; it is not sent again
  kDry,      ///< would have been sent
};
std::string_view to_string(MailState state);

/// Of kinds of mails, for Outbox::first_started().
inline constexpr std::string_view kReportsStarted = "started";
inline constexpr std::string_view kDigestsStarted = "started_digests";
inline constexpr std::string_view kBudgetsStarted = "started_budgets";

/// A time that does not come: the year 9999.
inline constexpr std::int64_t kUntilWithdrawn = 253'402'300'799'000;

/// Mails that wait, and contacts. Used by one thread at a time. Every function is a transaction.
/// Errors: kUnavailable if trying again may help (also where another program leads), otherwise
/// kInternal.
class Outbox {
 public:
  virtual ~Outbox() = default;

  /// Queues mails, without those whose id is there already. Returns how many were new.
  virtual Result<std::size_t> add(const std::vector<OutgoingMail>& mails) = 0;
  /// Queued mails that are due, by due_ms.
  virtual Result<std::vector<OutgoingMail>> due(std::int64_t now_ms, std::size_t limit) = 0;
  /// All queued mails of a digest, by id.
  virtual Result<std::vector<OutgoingMail>> of_digest(const std::string& digest) = 0;
  /// Marks mails as being handed over. False, and nothing is changed, if one is not queued.
  virtual Result<bool> hand_over(const std::vector<std::string>& ids) = 0;
  /// Ends mails in this state, and forgets their bodies.
  virtual Result<> finish(const std::vector<std::string>& ids,
                          MailState state,
                          std::int64_t now_ms) = 0;
  /// Queues mails, which may have been handed over, for later. `tried` counts a failure.
  virtual Result<> postpone(const std::vector<std::string>& ids,
                            std::int64_t due_ms,
                            bool tried) = 0;
  /// Ends mails that an earlier run of the program was handing over as kUnknown; returns their ids.
  virtual Result<std::vector<std::string>> end_interrupted(std::int64_t now_ms) = 0;
  virtual Result<std::int64_t> queued() = 0;
  /// How many people would have got mails since a time.
  virtual Result<std::int64_t> dry_people(std::int64_t since_ms) = 0;

  /// When mails of a kind were first switched on: now, if they were not before. `what` is
  /// kReportsStarted, kDigestsStarted or kBudgetsStarted.
  virtual Result<std::int64_t> first_started(std::string_view what, std::int64_t now_ms) = 0;
  /// Records that the user was notified of these rules.
  virtual Result<> note_told(const std::string& username,
                             const std::vector<std::string>& rules,
                             std::int64_t now_ms) = 0;
  /// The rules about which the user does not want mails; "*" is all.
  virtual Result<std::vector<std::string>> muted(const std::string& username,
                                                 std::int64_t now_ms) = 0;
  /// Until a time; kUntilWithdrawn: until the user wants it again, which is a time that has passed.
  virtual Result<> mute(const std::string& username,
                        const std::string& rule,
                        std::int64_t until_ms) = 0;

  /// Deletes mails that were done before the first time, contacts before the second one, and rows
  /// of users that no cluster knows any more. Mails about budgets are kept like contacts, because a
  /// budget may last a year and each user is notified once.
  virtual Result<> purge(std::int64_t mails_ms, std::int64_t contacts_ms) = 0;
};

}  // namespace ceems::store
