#include "exporter/gpu/claim/claim.h"

#include <utility>

namespace ceems::exporter::gpu {

void Assignments::publish(const std::string& manager, List list) {
  const MutexLock lock(mutex_);
  by_manager_[manager] = std::move(list);
  auto all = std::make_shared<List>();
  for (const auto& [name, part] : by_manager_) {
    all->insert(all->end(), part.begin(), part.end());
  }
  all_ = std::move(all);
}

std::shared_ptr<const Assignments::List> Assignments::all() const {
  const MutexLock lock(mutex_);
  return all_;
}

}  // namespace ceems::exporter::gpu
