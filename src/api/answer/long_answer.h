#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "api/answer/envelope.h"
#include "api/answer/stream_slots.h"
#include "base/result.h"
#include "net/http.h"

namespace ceems::api {

inline constexpr std::size_t kWholeAnswer = std::size_t{256} * 1024;  ///< streamed when longer
inline constexpr std::size_t kAnswerPiece = std::size_t{64} * 1024;

/// Answers 200 with all that `stream` writes: at once if it is short, else piece by piece, with one
/// of the user's slots. `text` is what the answer begins with, and `describe` sets its header
/// fields. A `Stream` has `Result<bool> fill(std::string&, std::size_t limit)`, which returns false
/// at the end, and `hold(StreamSlots::Slot)`.
template <class Stream, class Describe>
void answer_long(net::Response& response,
                 std::shared_ptr<Stream> stream,
                 std::string text,
                 StreamSlots& slots,
                 const std::string& user,
                 const Describe& describe) {
  const auto more = stream->fill(text, kWholeAnswer);
  if (!more) {
    answer_failure(response, more.error());
    return;
  }
  if (!*more) {
    response.status = 200;
    describe(response);
    response.body = std::move(text);
    return;
  }
  auto slot = slots.take(user);
  if (!slot) {
    answer_error(response, ApiErrorType::kTimeout,
                 "too many long answers are being read, try again later");
    response.set_header("Retry-After", "1");
    return;
  }
  response.status = 200;
  describe(response);
  stream->hold(std::move(*slot));
  response.next_chunk = [stream = std::move(stream),
                         start = std::move(text)](std::string& out) mutable {
    if (!start.empty()) {
      out += std::exchange(start, {});
      return true;
    }
    const auto next = stream->fill(out, out.size() + kAnswerPiece);
    if (!next) {
      throw std::runtime_error(next.error().message);
    }
    return *next;
  };
}

}  // namespace ceems::api
