#include "ingest/admin_sync.h"

#include <utility>

#include "base/log.h"

namespace ceems::ingest {

void AdminSync::write_configured() {
  if (configured_written_) {
    return;
  }
  auto done = writer_.write_admins("ceems", configured_);
  if (done && !has_source_) {
    done = writer_.write_admins("grafana", {});
  }
  configured_written_ = done.has_value();
  if (!done) {
    log::error("cannot write the administrators", {{"err", done.error().message}});
  }
}

bool AdminSync::write_fetched(Result<AdminNames> fetched) {
  if (fetched && fetched->names.empty()) {
    fetched = fail(ErrorCode::kNoData, "no administrators were found");
  }
  const Result<> done = !fetched       ? Result<>(fail(std::move(fetched).error()))
                        : fetched->all ? writer_.write_admins("grafana", fetched->names)
                                       : writer_.add_admins("grafana", fetched->names);
  const std::string error = done ? "" : done.error().message;
  if (!done && error != last_error_) {
    log::warn("cannot fetch the administrators from Grafana, keeping the known ones",
              {{"err", error}});
  } else if (done && !last_error_.empty()) {
    log::info("administrators are fetched from Grafana again");
  }
  last_error_ = error;
  return done.has_value();
}

}  // namespace ceems::ingest
