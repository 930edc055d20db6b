-- Calls the script for the messages of one crossing. Returns flat values, because walking Lua tables
-- from Python costs more than the script itself:
--
--     answered, clamped, kind, text, then for each answered message
--     fairness_key | false, weight | false, cost | false, n, throttle key 1 .. n
--
-- It stops at the first failure (`kind`, `text`: why message answered + 1 failed), so that Python can
-- ask the circuit breaker before the next message, and early when the batch has taken its time.
local trusted = ...

local error, next, type, unpack = error, next, type, table.unpack
local math_type, floor, tointeger, format = math.type, math.floor, math.tointeger, string.format
local raw_pcall, pause_wanted = trusted.raw_pcall, trusted.pause_wanted
local hook, FRAME = trusted.hook, trusted.FRAME

local KEY_BYTES_MAX = 256
local THROTTLE_KEYS_MAX = 16
local WEIGHT_MIN, WEIGHT_MAX = 1, 1000
local COST_MIN, COST_MAX = 0.001, 1000000

local results, results_count = {}, 0
local clamped = 0

local function key_text(value, name)
  if type(value) ~= "string" then
    error(format("%s must be a string, got %s", name, type(value)), 0)
  elseif #value > KEY_BYTES_MAX then
    error(format("%s has %d bytes; at most %d are allowed", name, #value, KEY_BYTES_MAX), 0)
  end
  return value
end

local function weight_of(value)
  if type(value) ~= "number" or value ~= value then
    error(format("weight must be a number, got %s (use tonumber on text)",
      value ~= value and "NaN" or type(value)), 0)
  end
  if value < WEIGHT_MIN then
    clamped = clamped + 1
    return WEIGHT_MIN
  elseif value > WEIGHT_MAX then
    clamped = clamped + 1
    return WEIGHT_MAX
  end
  return math_type(value) == "integer" and value or tointeger(floor(value))
end

local function cost_of(value)
  if type(value) ~= "number" then
    error(format("cost must be a number, got %s (use tonumber on text)", type(value)), 0)
  elseif not (value >= COST_MIN and value <= COST_MAX) then   -- NaN as well
    error(format("cost must be between 0.001 and 1000000, got %.14g", value), 0)
  end
  return value + 0.0
end

-- Runs inside the limits, since a metatable may make the reading of a result the script's own code.
local function take_result(routing)
  if type(routing) ~= "table" then
    error("on_enqueue must return a table, got " .. type(routing), 0)
  end
  local at = results_count
  local fairness_key, weight, cost = routing.fairness_key, routing.weight, routing.cost
  results[at + 1] = fairness_key ~= nil and key_text(fairness_key, "fairness_key") or false
  results[at + 2] = weight ~= nil and weight_of(weight) or false
  results[at + 3] = cost ~= nil and cost_of(cost) or false
  local keys = routing.throttle_keys
  if keys == nil then
    results[at + 4] = -1
    results_count = at + 4
    return
  elseif type(keys) ~= "table" then
    error("throttle_keys must be a list of strings, got " .. type(keys), 0)
  end
  local count = 0
  while true do
    local key = keys[count + 1]
    if key == nil then
      break
    elseif count == THROTTLE_KEYS_MAX then
      error(format("throttle_keys has more than %d keys", THROTTLE_KEYS_MAX), 0)
    end
    count = count + 1
    results[at + 4 + count] = key_text(key, "throttle_keys")
  end
  if count == 0 and next(keys) ~= nil then
    error("throttle_keys must be a list (1, 2, 3, ...), got a table with other keys", 0)
  end
  results[at + 4] = count
  results_count = at + 4 + count
end

local function route_one(arguments, at, queue)
  local headers = {}
  for i = at + 2, at + 2 * arguments[at + 1], 2 do
    headers[arguments[i]] = arguments[i + 1]
  end
  take_result(hook({ headers = headers, payload_size = arguments[at], queue = queue }))
end

-- `frame` comes first: it tells the count hook that this is our code (meter.lua).
local function route(frame, version, ceiling, queue, count, ...)
  local arguments, at, answered = { ... }, 1, 0
  results_count, clamped = 4, 0
  trusted.see_config(version, ceiling)
  trusted.begin_batch(FRAME)
  local kind, text = false, false
  while answered < count do
    trusted.begin_call(FRAME)
    local ok, problem = raw_pcall(route_one, arguments, at, queue)
    if not ok then
      kind, text = trusted.explain(FRAME, problem)
      break
    end
    at = at + 2 + 2 * arguments[at + 1]
    answered = answered + 1
    if pause_wanted(FRAME) then
      break
    end
  end
  trusted.end_batch(FRAME)
  results[1], results[2], results[3], results[4] = answered, clamped, kind, text
  return unpack(results, 1, results_count)
end

return function(...)
  return route(FRAME, ...)
end
