#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/ended_units.h"
#include "store/sql/session.h"

namespace ceems::store {

/// The positions of targets of every database, with a session of its own.
class SessionTargets final : public ExportTargets {
 public:
  explicit SessionTargets(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Result<> set(const std::vector<std::string>& names) override;
  Result<std::int64_t> position(const std::string& name) override;
  Result<> advance(const std::string& name, std::int64_t place) override;

 private:
  [[nodiscard]] Sql sql(std::string_view text) const { return {session_->dialect(), text}; }

  std::unique_ptr<Session> session_;
};

}  // namespace ceems::store
