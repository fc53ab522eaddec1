#include "exporter/gpu/inventory/sm_table.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ceems::exporter::gpu {
namespace {

constexpr std::array kModels =
    std::to_array<std::pair<std::string_view, std::uint64_t>>({{"V100", 80},
                                                               {"A2", 10},
                                                               {"A10", 72},
                                                               {"A16", 10},
                                                               {"A30", 56},
                                                               {"A40", 84},
                                                               {"A100", 108},
                                                               {"A800", 108},
                                                               {"H100", 132},
                                                               {"H200", 132},
                                                               {"H800", 114},
                                                               {"B100", 132},
                                                               {"B200", 132}});

}  // namespace

std::uint64_t sm_count_of(std::string_view product_name) {
  while (!product_name.empty()) {
    const std::size_t end = std::min(product_name.find_first_of(" -"), product_name.size());
    const auto word = product_name.substr(0, end);
    const auto* const found = std::find_if(kModels.begin(), kModels.end(),
                                           [&](const auto& model) { return model.first == word; });
    if (found != kModels.end()) {
      return found->second;
    }
    product_name.remove_prefix(std::min(end + 1, product_name.size()));
  }
  return 0;
}

}  // namespace ceems::exporter::gpu
