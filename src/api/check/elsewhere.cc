#include "api/check/elsewhere.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "advice/catalogue.h"
#include "advice/template.h"
#include "advice/value.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

using report::Number;

/// A smaller difference is not worth a change.
constexpr double kCheaper = 0.95;

/// What the job needs, if GPUs that no run used are left out.
struct Needs {
  double nodes = 1;
  Number cpus = {}, memory = {}, time_limit = {};
  double gpus = 0;
  bool gpus_unused = false;
};

Needs needs_of(const JobRequest& request, const Unused& unused) {
  Needs needs{.nodes = std::max(request.nodes.value_or(1), 1.0),
              .cpus = request.cpus,
              .memory = request.memory,
              .time_limit = request.time_limit,
              .gpus = request.gpus.value_or(0)};
  if (needs.gpus > 0 && unused.gpus.value_or(0) >= needs.gpus) {
    needs.gpus_unused = true;
    needs.gpus = 0;
  }
  return needs;
}

/// Whether the job fits, as far as the file and the request say.
bool fits(const Resource& resource, const Needs& needs) {
  const auto within = [](const Number& need, const Number& most) {
    return !need || !most || *need <= *most;
  };
  const auto on_node = [&needs](const Number& all) {
    return all ? Number(*all / needs.nodes) : std::nullopt;
  };
  // A file that does not name GPUs says that there are none.
  return within(needs.nodes, resource.nodes) && within(on_node(needs.cpus), resource.cpus) &&
         within(on_node(needs.memory), resource.memory) &&
         needs.gpus / needs.nodes <= resource.gpus.value_or(0) &&
         within(needs.time_limit, resource.time_limit);
}

/// By the prices of the file, for the CPUs that are asked for and these GPUs.
Number cost_at(const Resource& resource,
               const JobRequest& request,
               double gpus,
               const Expected& expected) {
  if ((!resource.core_hour && !resource.gpu_hour) || !expected.elapsed || !request.cpus) {
    return std::nullopt;
  }
  const double hours = expected.elapsed->mid / kHourSeconds;
  return hours *
         (*request.cpus * resource.core_hour.value_or(0) + gpus * resource.gpu_hour.value_or(0));
}

bool is_as_large(const Resource& resource, const JobRequest& request) {
  const auto reaches = [](const Number& asked, const Number& least) {
    return least && asked && *asked >= *least;
  };
  return reaches(request.nodes, resource.least_nodes) ||
         reaches(request.cpus, resource.least_cpus) || reaches(request.gpus, resource.least_gpus);
}

std::string money(double amount, const std::string& currency) {
  return fmt::format("{:.2f}{}{}", amount, currency.empty() ? "" : " ", currency);
}

/// A text of the catalogue with these words.
std::string say(std::string_view language, std::string_view key, const advice::Facts& words) {
  const advice::Catalogue& texts = advice::catalogue(language);
  return advice::fill(texts.word(key), words, texts.notation).value_or(std::string());
}

class Comparison {
 public:
  Comparison(const std::vector<Resource>& resources,
             const JobRequest& request,
             const Expected& expected,
             const Unused& unused)
      : request_(request), expected_(expected), needs_(needs_of(request, unused)) {
    for (const Resource& one : resources) {
      if (is_here(one) && one.partition == request.partition) {
        present_ = &one;
      }
    }
    if (present_ != nullptr) {
      cost_ = cost_at(*present_, request, request.gpus.value_or(0), expected);
    }
  }

  [[nodiscard]] std::optional<Elsewhere> compare(const Resource& other,
                                                 const std::string& currency,
                                                 std::string_view language) const {
    if (!fits(other, needs_)) {
      return std::nullopt;
    }
    advice::Facts words;
    words.set("partition", other.partition);
    words.set("site", other.site);
    Elsewhere found{.resource = &other, .cost = cost_at(other, request_, needs_.gpus, expected_)};
    if (!other.site.empty()) {
      found.text = say(language, "check.site", words);
      return is_as_large(other, request_) ? std::optional(std::move(found)) : std::nullopt;
    }
    if (!is_here(other) || other.partition == request_.partition) {
      return std::nullopt;
    }
    if (found.cost && cost_ && *found.cost < kCheaper * *cost_) {
      words.set("cost", money(*found.cost, currency));
      words.set("here", money(*cost_, currency));
      found.text = say(language, "check.cheaper", words);
      return found;
    }
    const bool has_gpus =
        needs_.gpus_unused || (present_ != nullptr && present_->gpus.value_or(0) > 0);
    if (needs_.gpus == 0 && has_gpus && other.gpus.value_or(0) == 0) {
      found.text = say(language, "check.no_gpus", words);
      return found;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool is_here(const Resource& one) const {
    return one.site.empty() && (one.cluster.empty() || one.cluster == request_.cluster_id);
  }

  const JobRequest& request_;
  const Expected& expected_;
  Needs needs_;
  const Resource* present_ = nullptr;  ///< the partition of the request; null: not known
  Number cost_ = {};                   ///< there
};

}  // namespace

std::vector<Elsewhere> find_elsewhere(const std::vector<Resource>& resources,
                                      const JobRequest& request,
                                      const Expected& expected,
                                      const Unused& unused,
                                      const std::string& currency,
                                      std::string_view language) {
  const Comparison comparison(resources, request, expected, unused);
  std::vector<Elsewhere> all;
  for (const Resource& one : resources) {
    if (auto found = comparison.compare(one, currency, language)) {
      all.push_back(std::move(*found));
    }
  }
  return all;
}

}  // namespace ceems::api
