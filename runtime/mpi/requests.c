/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that wait for requests, test them, start them and free them. */
#include "internal.h"

static bool is_active(MPI_Request request) { return request != MPI_REQUEST_NULL && request->active; }
static bool is_done(MPI_Request request) { return !is_active(request) || request->complete; }

static MPI_Comm comm_of(MPI_Request request) { return request == MPI_REQUEST_NULL ? MPI_COMM_NULL : request->comm; }

/* The communicator whose error handler is asked for a list of requests. */
static MPI_Comm comm_of_list(int count, MPI_Request requests[]) {
  for (int index = 0; index < count; ++index)
    if (requests[index] != MPI_REQUEST_NULL) return requests[index]->comm;
  return MPI_COMM_NULL;
}

static MPI_Status *status_at(MPI_Status statuses[], int index) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[index];
}

static int test(MPI_Request *request, int *flag, MPI_Status *status) {
  msmpi_progress();
  *flag = is_done(*request);
  return *flag ? msmpi_take_result(request, status) : MPI_SUCCESS;
}

static int take_all(int count, MPI_Request requests[], MPI_Status statuses[]) {
  int result = MPI_SUCCESS;
  for (int index = 0; index < count; ++index) {
    const int error = msmpi_take_result(&requests[index], status_at(statuses, index));
    if (statuses != MPI_STATUSES_IGNORE) statuses[index].MPI_ERROR = error;
    if (error) result = MPI_ERR_IN_STATUS;
  }
  return result;
}

static int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) {
  for (int index = 0; index < count; ++index)
    while (!is_done(requests[index])) msmpi_progress_or_sleep();
  return take_all(count, requests, statuses);
}

static int test_all(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
  msmpi_progress();
  *flag = 1;
  for (int index = 0; index < count; ++index)
    if (!is_done(requests[index])) *flag = 0;
  return *flag ? take_all(count, requests, statuses) : MPI_SUCCESS;
}

/* The first request that is active and complete; MPI_UNDEFINED if none is active, -1 if none is complete. */
static int find_done(int count, MPI_Request requests[]) {
  int found = MPI_UNDEFINED;
  for (int index = 0; index < count; ++index) {
    if (!is_active(requests[index])) continue;
    if (requests[index]->complete) return index;
    found = -1;
  }
  return found;
}

static int take_any(MPI_Request requests[], int *index, MPI_Status *status) {
  MPI_Request none = MPI_REQUEST_NULL;
  return msmpi_take_result(*index >= 0 ? &requests[*index] : &none, status);
}

static int wait_any(int count, MPI_Request requests[], int *index, MPI_Status *status) {
  while ((*index = find_done(count, requests)) == -1) msmpi_progress_or_sleep();
  return take_any(requests, index, status);
}

static int test_any(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
  msmpi_progress();
  *index = find_done(count, requests);
  *flag = *index != -1;
  if (*flag) return take_any(requests, index, status);
  *index = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

static int take_some(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
  int result = MPI_SUCCESS;
  *done = 0;
  for (int index = 0; index < count; ++index) {
    if (!is_active(requests[index]) || !requests[index]->complete) continue;
    const int error = msmpi_take_result(&requests[index], status_at(statuses, *done));
    if (statuses != MPI_STATUSES_IGNORE) statuses[*done].MPI_ERROR = error;
    if (error) result = MPI_ERR_IN_STATUS;
    indices[(*done)++] = index;
  }
  return result;
}

static int some(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[], bool wait) {
  msmpi_progress();
  int found;
  while ((found = find_done(count, requests)) == -1 && wait) msmpi_progress_or_sleep();
  if (found != MPI_UNDEFINED) return take_some(count, requests, done, indices, statuses);
  *done = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  CALL(Wait, comm_of(*request), msmpi_wait(request, status));
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  CALL(Test, comm_of(*request), test(request, flag, status));
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const MPI_Comm comm = comm_of_list(count, requests);
  CALL(Waitall, comm, wait_all(count, requests, statuses));
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
  const MPI_Comm comm = comm_of_list(count, requests);
  CALL(Testall, comm, test_all(count, requests, flag, statuses));
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
  const MPI_Comm comm = comm_of_list(count, requests);
  CALL(Waitany, comm, wait_any(count, requests, index, status));
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
  const MPI_Comm comm = comm_of_list(count, requests);
  CALL(Testany, comm, test_any(count, requests, index, flag, status));
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
  const MPI_Comm comm = comm_of_list(count, requests);
  CALL(Waitsome, comm, some(count, requests, done, indices, statuses, true));
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
  const MPI_Comm comm = comm_of_list(count, requests);
  CALL(Testsome, comm, some(count, requests, done, indices, statuses, false));
}

static int cancel(MPI_Request request) {
  if (!is_active(request)) return msmpi_error(MPI_ERR_REQUEST, "there is no active request to cancel");
  if (!request->sends) msmpi_withdraw(request);
  return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request *request) { CALL(Cancel, comm_of(*request), cancel(*request)); }

int MPI_Test_cancelled(const MPI_Status *status, int *flag) {
  CALL(Test_cancelled, MPI_COMM_NULL, (*flag = status->manyscale_cancelled, MPI_SUCCESS));
}

static int free_request(MPI_Request *request) {
  if (*request == MPI_REQUEST_NULL) return msmpi_error(MPI_ERR_REQUEST, "there is no request to free");
  msmpi_detach(*request);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int MPI_Request_free(MPI_Request *request) { CALL(Request_free, comm_of(*request), free_request(request)); }

static int request_status(MPI_Request request, int *flag, MPI_Status *status) {
  msmpi_progress();
  *flag = is_done(request);
  if (!*flag) return MPI_SUCCESS;
  if (!is_active(request))
    msmpi_set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
  else if (status != MPI_STATUS_IGNORE)
    *status = request->status;
  return MPI_SUCCESS;
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
  CALL(Request_get_status, comm_of(request), request_status(request, flag, status));
}

static int start(int count, MPI_Request requests[]) {
  for (int index = 0; index < count; ++index) {
    MPI_Request request = requests[index];
    if (request == MPI_REQUEST_NULL || !request->persistent || request->active)
      return msmpi_error(MPI_ERR_REQUEST, "request %d is not one that can be started", index);
    if (!request->sends) msmpi_progress();
    msmpi_start(request);
  }
  return MPI_SUCCESS;
}

int MPI_Start(MPI_Request *request) { CALL(Start, comm_of(*request), start(1, request)); }

int MPI_Startall(int count, MPI_Request requests[]) {
  CALL(Startall, comm_of_list(count, requests), start(count, requests));
}
