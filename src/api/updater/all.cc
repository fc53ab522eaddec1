#include "api/updater/tsdb.h"
#include "api/updater/updater.h"

namespace ceems::api {

std::vector<UpdaterSpec> all_updaters() {
  return {
      tsdb_updater(),
  };
}

}  // namespace ceems::api
