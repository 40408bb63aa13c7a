# SPDX-License-Identifier: Apache-2.0
# docker build --tag manyscale .
# docker run --rm --volume "$PWD:/runs" manyscale demo
FROM python:3.12-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ make
COPY . /source
RUN pip wheel --verbose --no-deps --wheel-dir /wheel /source \
    --config-settings=cmake.define.MANYSCALE_PORTABLE=ON --config-settings=install.strip=true

FROM python:3.12-slim-bookworm
COPY --from=build /wheel /wheel
RUN pip install --no-cache-dir /wheel/*.whl && rm -r /wheel
WORKDIR /runs
ENTRYPOINT ["manyscale"]
CMD ["--help"]
