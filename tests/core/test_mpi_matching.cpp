// SPDX-License-Identifier: Apache-2.0
// Matching against plain lists searched from the front, with many messages and receives pending and all
// wildcards.
#include <list>
#include <map>

#include "engine/random.hpp"
#include "mpi/matching.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::mpi;
using manyscale::test::check;

namespace {

// The reference: the messages and receives of each rank in the order they came.
struct Plain {
  struct Receive {
    std::uint32_t number;
    Request request;
  };
  struct Message {
    std::uint32_t number;
    Envelope envelope;
  };
  std::map<std::uint32_t, std::list<Receive>> posted;
  std::map<std::uint32_t, std::list<Message>> kept;

  std::uint32_t post(std::uint32_t number, const Request& request) {
    auto& messages = kept[request.rank];
    for (auto at = messages.begin(); at != messages.end(); ++at) {
      if (!request.fits(at->envelope)) continue;
      const std::uint32_t found = at->number;
      messages.erase(at);
      return found;
    }
    posted[request.rank].push_back({number, request});
    return none;
  }
  std::uint32_t match(std::uint32_t rank, const Envelope& envelope) {
    auto& receives = posted[rank];
    for (auto at = receives.begin(); at != receives.end(); ++at) {
      if (!at->request.fits(envelope)) continue;
      const std::uint32_t found = at->number;
      receives.erase(at);
      return found;
    }
    return none;
  }
  std::uint32_t probe(std::uint32_t rank, const Request& wanted) {
    for (const Message& message : kept[rank])
      if (wanted.fits(message.envelope)) return message.number;
    return none;
  }
};

void compare(std::uint64_t seed, std::uint32_t ranks, std::uint32_t sources, double wild, double receives) {
  Random random(seed, 1);
  Pool<Request> requests;
  Pool<Arrival> arrivals;
  Matcher matcher(requests, arrivals, ranks);
  Plain plain;
  for (int step = 0; step < 20'000; ++step) {
    const auto rank = static_cast<std::uint32_t>(random.below(ranks));
    const auto source = static_cast<std::uint32_t>(random.below(sources));
    const auto tag = static_cast<std::int32_t>(random.below(3));
    const auto context = static_cast<std::uint32_t>(random.below(2));
    const auto wanted = [&] {
      Request request;
      request.rank = rank;
      request.peer = random.uniform() < wild ? any_rank : source;
      request.tag = random.uniform() < wild ? any_tag : tag;
      request.context = context;
      return request;
    };
    if (random.uniform() < receives) {
      const std::uint32_t number = requests.take();
      requests[number] = wanted();
      const std::uint32_t found = matcher.post(number);
      check(found == plain.post(number, requests[number]), "a receive takes the first message that fits");
      if (found != none) {
        arrivals.release(found);
        requests.release(number);
      }
    } else {
      const Envelope envelope{.source = source, .destination = rank, .tag = tag, .context = context};
      const std::uint32_t found = matcher.match(rank, envelope);
      check(found == plain.match(rank, envelope), "a message goes to the first receive that fits");
      if (found != none) {
        requests.release(found);
      } else {
        const std::uint32_t number = arrivals.take();
        arrivals[number].envelope = envelope;
        arrivals[number].rank = rank;
        matcher.keep(number);
        plain.kept[rank].push_back({number, envelope});
      }
    }
    const Request looked_for = wanted();
    check(matcher.probe(rank, looked_for) == plain.probe(rank, looked_for),
          "a probe finds the first that fits");
    if (manyscale::test::failed > 0) return;
  }
}

TEST(envelopes_survive_packing) {
  Random random(3, 3);
  for (int i = 0; i < 1000; ++i) {
    Envelope envelope;
    envelope.source = static_cast<std::uint32_t>(random.below(1u << 28));
    envelope.destination = static_cast<std::uint32_t>(random.below(1u << 28));
    envelope.step = static_cast<Step>(random.below(5));
    envelope.tag = static_cast<std::int32_t>(random.below(1u << 31));
    envelope.context = static_cast<std::uint32_t>(random.below(1u << 16));
    envelope.request = static_cast<std::uint32_t>(random.next());
    envelope.number = static_cast<std::uint32_t>(random.next());
    envelope.pages = static_cast<std::uint32_t>(random.below(Envelope::most_pages + 1));
    envelope.word = random.next();
    const Envelope back = Envelope::unpack(envelope.pack());
    check(back.source == envelope.source && back.destination == envelope.destination &&
              back.step == envelope.step && back.tag == envelope.tag && back.context == envelope.context &&
              back.request == envelope.request && back.number == envelope.number &&
              back.pages == envelope.pages && back.word == envelope.word,
          "an envelope comes out as it went in");
  }
}

TEST(messages_and_receives_match_in_order) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    compare(seed, 1, 4, 0.3, 0.5);
    compare(seed, 8, 1000, 0.0, 0.5);  // many pending, none with wildcards
    compare(seed, 4, 50, 0.1, 0.45);   // messages pile up
    compare(seed, 4, 50, 0.1, 0.55);   // receives pile up
  }
}

}  // namespace
