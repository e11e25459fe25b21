#pragma once

#include <prometheus/metric_family.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"

namespace fermata {

// Collects what one answer to Prometheus holds. Families come out in the order in which they came in.
class MetricFamilies {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  void counter(std::string_view name, std::string_view help, double value, Labels labels = {});
  void gauge(std::string_view name, std::string_view help, double value, Labels labels = {});
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram, Labels labels = {});

  std::string text() const;

 private:
  // Another one of the same name joins its family.
  prometheus::ClientMetric& add(std::string_view name, std::string_view help, prometheus::MetricType type,
                                Labels labels);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace fermata
