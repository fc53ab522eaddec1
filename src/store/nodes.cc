#include "store/nodes.h"

#include "store/store.h"

namespace ceems::store {
namespace {

std::unexpected<Error> no_nodes() {
  return fail(ErrorCode::kInvalidArgument, "this database keeps no nodes");
}

}  // namespace

Result<std::vector<NodeDay>> Reader::node_days(const std::vector<std::string>& /*clusters*/,
                                               const TimeRange& /*days*/) {
  return no_nodes();
}
Result<std::vector<KnownNode>> Reader::known_nodes(const std::vector<std::string>& /*clusters*/) {
  return no_nodes();
}
Result<std::vector<Bill>> Reader::bills(const TimeRange& /*period*/) {
  return no_nodes();
}
Result<std::vector<model::Flavor>> Reader::flavors(const std::string& /*cluster_id*/) {
  return std::vector<model::Flavor>{};
}
Result<std::optional<std::int64_t>> Writer::nodes_until(const std::string& /*cluster_id*/) {
  return no_nodes();
}
Result<> Writer::write_nodes(const NodeUpdate& /*update*/) {
  return no_nodes();
}

}  // namespace ceems::store
