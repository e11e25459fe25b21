#include "server/metric_families.h"

#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>

namespace fermata {

prometheus::ClientMetric& MetricFamilies::add(std::string_view name, std::string_view help, prometheus::MetricType type,
                                              Labels labels) {
  if (families_.empty() || families_.back().name != name)
    families_.push_back({std::string(name), std::string(help), type, {}});
  prometheus::ClientMetric& metric = families_.back().metric.emplace_back();
  metric.label = std::move(labels);
  return metric;
}

void MetricFamilies::counter(std::string_view name, std::string_view help, double value, Labels labels) {
  add(name, help, prometheus::MetricType::Counter, std::move(labels)).counter.value = value;
}

void MetricFamilies::gauge(std::string_view name, std::string_view help, double value, Labels labels) {
  add(name, help, prometheus::MetricType::Gauge, std::move(labels)).gauge.value = value;
}

void MetricFamilies::histogram(std::string_view name, std::string_view help, const Histogram& histogram,
                               Labels labels) {
  const Histogram::Snapshot seen = histogram.snapshot();
  auto& into = add(name, help, prometheus::MetricType::Histogram, std::move(labels)).histogram;
  for (std::size_t i = 0; i < seen.counts.size(); ++i) {
    into.sample_count += seen.counts[i];
    const bool is_last = i == histogram.bounds().size();
    into.bucket.push_back(
        {into.sample_count, is_last ? std::numeric_limits<double>::infinity() : histogram.bounds()[i]});
  }
  into.sample_sum = seen.sum;
}

std::string MetricFamilies::text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families_);
  return out.str();
}

}  // namespace fermata
