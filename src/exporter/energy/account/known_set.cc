#include "exporter/energy/account/known_set.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace ceems::exporter::energy {

std::size_t KnownSet::add(Domain domain, std::string name) {
  slots_.push_back({.domain = domain, .name = std::move(name)});
  return slots_.size() - 1;
}

bool KnownSet::advance(double seconds, bool bridge) {
  joined_.clear();
  left_.clear();
  missing_ = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.silent = slot.seen ? 0 : slot.silent + seconds;
    if (std::exchange(slot.seen, false) && !slot.member) {
      slot.member = true;
      joined_.push_back(i);
    }
    const double most = bridge && slot.domain == Domain::kGpu ? kBridge : kSilent;
    if (slot.member && slot.silent > most) {
      slot.member = false;
      left_.push_back(i);
    }
    missing_ += missing(i) ? 1 : 0;
  }
  const bool changed = !joined_.empty() || !left_.empty();
  if (changed) {
    name_members();
  }
  return changed;
}

void KnownSet::name_members() {
  std::vector<std::string_view> names;
  for (const Slot& slot : slots_) {
    if (slot.member) {
      names.push_back(slot.name);
    }
  }
  std::ranges::sort(names);
  names_.clear();
  for (const std::string_view name : names) {
    names_.append(names_.empty() ? "" : ",").append(name);
  }
}

}  // namespace ceems::exporter::energy
