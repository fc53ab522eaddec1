#pragma once

#include <memory>
#include <string>
#include <utility>

#include "advice/rule.h"
#include "base/mutex.h"
#include "base/result.h"

namespace ceems::advice {

/// The rules of a program, which can be read again while it runs. Safe for concurrent use.
class RulesInUse {
 public:
  /// `directory` is that of reload().
  explicit RulesInUse(RuleSet rules = core_rules(), std::string directory = {})
      : directory_(std::move(directory)),
        rules_(std::make_shared<const RuleSet>(std::move(rules))) {}

  /// They stay the same for as long as the caller keeps them.
  [[nodiscard]] std::shared_ptr<const RuleSet> get() const {
    const MutexLock lock(mutex_);
    return rules_;
  }

  /// Reads the directory again. After an error, which is that of load_rules(), the rules stay.
  Result<> reload() {
    CEEMS_TRY(rules, load_rules(directory_));
    auto shared = std::make_shared<const RuleSet>(std::move(rules));
    const MutexLock lock(mutex_);
    rules_ = std::move(shared);
    return {};
  }

 private:
  const std::string directory_;
  mutable Mutex mutex_;
  std::shared_ptr<const RuleSet> rules_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::advice
