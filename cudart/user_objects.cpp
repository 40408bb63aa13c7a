// SPDX-License-Identifier: Apache-2.0
#include "user_objects.hpp"

#include <algorithm>
#include <mutex>

#include "graphs.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

std::mutex& references_mutex() {
  static std::mutex& only = *new std::mutex;
  return only;
}

}  // namespace

void release_object(UserObject* object, unsigned count) {
  {
    const std::lock_guard lock(references_mutex());
    object->references -= std::min(count, object->references);
    if (object->references != 0) return;
  }
  if (object->destroy != nullptr) object->destroy(object->pointer);
  delete object;
}

namespace {

void retain(UserObject& object, unsigned count) {
  const std::lock_guard lock(references_mutex());
  object.references += count;
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaUserObjectCreate(UserObject** object, void* pointer, manyscale::cudart::HostFunction destroy,
                           unsigned references, unsigned) {
  if (object == nullptr || destroy == nullptr || references == 0) return finish(Error::invalid_value);
  *object = new UserObject{pointer, destroy, references};
  return finish(Error::success);
}

Error cudaUserObjectRetain(UserObject* object, unsigned count) {
  if (object == nullptr) return finish(Error::invalid_value);
  retain(*object, count);
  return finish(Error::success);
}

Error cudaUserObjectRelease(UserObject* object, unsigned count) {
  if (object == nullptr) return finish(Error::invalid_value);
  release_object(object, count);
  return finish(Error::success);
}

Error cudaGraphRetainUserObject(Graph* handle, UserObject* object, unsigned count, unsigned flags) {
  Graph* graph = find_graph(handle);
  if (graph == nullptr || object == nullptr) return finish(Error::invalid_value);
  constexpr unsigned move = 1;  // the program's references become the graph's
  if ((flags & move) == 0) retain(*object, count);
  graph->objects.insert(graph->objects.end(), count, object);
  return finish(Error::success);
}

Error cudaGraphReleaseUserObject(Graph* handle, UserObject* object, unsigned count) {
  Graph* graph = find_graph(handle);
  if (graph == nullptr || object == nullptr) return finish(Error::invalid_value);
  for (; count != 0; --count) {
    const auto found = std::ranges::find(graph->objects, object);
    if (found == graph->objects.end()) break;
    graph->objects.erase(found);
    release_object(object, 1);
  }
  return finish(Error::success);
}

}  // extern "C"
