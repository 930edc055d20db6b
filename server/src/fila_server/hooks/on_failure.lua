-- Asks the script what to do with a message that failed: kind, text, action, delay_ms | false, notes (fila.lua).
local trusted = ...

local error, next, type, format = error, next, type, string.format
local floor, tointeger = math.floor, math.tointeger
local raw_pcall, getmetatable = trusted.raw_pcall, debug.getmetatable
local limited = trusted.limited

local KNOWN = { action = true, delay_ms = true }
local FIELDS_LOOKED_AT = 16

local DELAY_MS_MAX = 366 * 24 * 3600 * 1000

local action, delay_ms

local function take_result(decision)
  if type(decision) ~= "table" then
    error("on_failure must return a table, got " .. type(decision), 0)
  end
  local wanted, delay = decision.action, decision.delay_ms
  if wanted ~= "retry" and wanted ~= "dlq" then
    error(format("action must be \"retry\" or \"dlq\", got %s",
      type(wanted) == "string" and format("%q", wanted:sub(1, 40)) or type(wanted)), 0)
  end
  local looked_at = 0
  for name in next, decision do
    looked_at = looked_at + 1
    if not KNOWN[name] then
      trusted.ignore_field(name)
    end
    if looked_at == FIELDS_LOOKED_AT then
      break
    end
  end
  action, delay_ms = wanted, false
  if delay ~= nil and wanted == "retry" then
    if type(delay) ~= "number" then
      error(format("delay_ms must be a number, got %s (use tonumber on text)", type(delay)), 0)
    elseif not (delay >= 0 and delay <= DELAY_MS_MAX) then   -- NaN as well
      error(format("delay_ms must be between 0 and %d, got %.14g", DELAY_MS_MAX, delay), 0)
    end
    delay_ms = tointeger(floor(delay))
  end
end

-- A metatable may make the reading of a decision the script's own code.
local function take_limited(decision)
  if getmetatable(decision) == nil then
    take_result(decision)
    return
  end
  local ok, problem = limited(take_result, decision)
  if not ok then
    error(problem, 0)
  end
end

-- The attempts a second time, for scripts that compute with nothing else. Called last, so no frame of ours stays.
local function ask(message)
  return trusted.hook(message, message.attempts)
end

local function decide(version, ceiling, queue, channel, id, attempts, problem, fairness_key, ...)
  local headers, arguments = {}, { ... }
  for i = 1, #arguments, 2 do
    headers[arguments[i]] = arguments[i + 1]
  end
  trusted.see_config(version, ceiling)
  trusted.begin_batch(0)
  trusted.begin_call()
  local ok, outcome = limited(ask, {
    headers = headers, id = id, attempts = attempts, queue = queue, channel = channel, error = problem,
    fairness_key = fairness_key,
  })
  if ok then
    ok, outcome = raw_pcall(take_limited, outcome)
  end
  if not ok then
    local kind, text = trusted.explain(outcome)
    return kind, text, false, false, trusted.take_notes()
  end
  return false, false, action, delay_ms, trusted.take_notes()
end

return decide
