// Objects of the Kubernetes API: lists, lines of a watch, role bindings, credentials.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "ingest/manager/k8s/units.h"
#include "kube/line_splitter.h"
#include "kube/objects.h"
#include "kube/pod_store.h"

namespace {

void check_pods(const ceems::kube::PodStore& store) {
  const ceems::model::Window window{.start_ms = 1'767'225'600'000, .end_ms = 1'767'229'200'000};
  for (const auto& stored : store.pods()) {
    CEEMS_CHECK(!stored->pod.uid.empty());
    std::size_t bytes = 0;
    for (const auto& [name, value] : stored->pod.annotations) {
      bytes += name.size() + value.size();
    }
    CEEMS_CHECK(bytes <= ceems::kube::kMaxMapBytes);
    const auto unit =
        ceems::ingest::k8s_unit(*stored, {}, window, window.start_ms, ceems::TimeZone());
    if (!unit) {
      continue;
    }
    CEEMS_CHECK(ceems::is_utf8(unit->tags) && ceems::is_utf8(unit->username));
    CEEMS_CHECK(unit->ended_at_ts <= window.end_ms);
    for (const auto& [name, value] : unit->total_time_seconds) {
      CEEMS_CHECK(value >= 0);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ceems::kube::PodStore store;
  if (auto list = ceems::kube::parse_pod_list(text)) {
    store.replace(std::move(list->pods), 1'767'225'600'000);
  }
  ceems::kube::LineSplitter lines(std::size_t{1} << 16U);
  const auto fed = lines.feed(text, [&store](std::string_view line) -> ceems::Result<> {
    if (auto event = ceems::kube::parse_watch_line(line)) {
      store.apply(*std::move(event), 1'767'227'000'000);
    }
    return {};
  });
  CEEMS_CHECK(fed.has_value());
  check_pods(store);
  if (const auto bindings = ceems::kube::parse_role_bindings(text)) {
    for (const auto& bound : bindings->users) {
      CEEMS_CHECK(!bound.user.empty() && !bound.name_space.empty());
    }
  }
  if (const auto credential = ceems::kube::parse_exec_credential(text)) {
    CEEMS_CHECK(!credential->token.empty() || !credential->client_key.empty());
  }
  CEEMS_CHECK(ceems::kube::status_message(text).size() < 1000);
  return 0;
}
