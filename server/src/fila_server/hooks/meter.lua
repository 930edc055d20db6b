-- What a script may spend, and how it is stopped. Loaded first; next: libraries.lua.
--
-- Three things end a call: its instructions, its time, its memory. Instructions are counted by a
-- count hook; C functions whose work depends on their arguments are wrapped (libraries.lua) and
-- charge what they may take before they start, because no hook runs inside C. Memory is capped by
-- the allocator. Once something is spent, `spent` stays set until the next call begins, and every
-- way a script has to catch an error (there is one, pcall) raises it again.
local trusted, now_ns, instructions_max, time_max_ns, pause_after_ns = ...

local debug, error, pcall, type, collectgarbage = debug, error, pcall, type, collectgarbage
local sethook, getlocal, min, max = debug.sethook, debug.getlocal, math.min, math.max

local STEP = 100             -- instructions between two looks: 0.25 us each, so about 5 % of a script
local TICKS_UNTIMED = 5      -- of a call, before the clock is read at every look: most calls end by then
-- Single instructions get slow only on long strings (comparing, hashing, joining: up to some ms).
-- So once there may be such strings, looks are ten times closer, each with the clock.
local HEAVY_STEP = 10
local HEAVY_STRING_BYTES = 16 * 1024
local HEAVY_HEAP_KIB = 256   -- above the heap the environment itself takes; garbage stays below that
local HEAVY_GROWTH_KIB = 64  -- within one call
local CROWDED_AGAIN_KIB = 128

local MEMORY_ERROR = "not enough memory"   -- Lua's own text, always this very string
local OUT_OF_INSTRUCTIONS = "the script took more than " .. instructions_max .. " instructions"
local OUT_OF_TIME = "the script took more than " .. time_max_ns // 1000000 .. " ms"
local INTERRUPTED = "the call was interrupted"
local OUT_OF_MEMORY = "the script needs more memory than a hook may use"

-- The first local of a function that belongs to us and must not be stopped halfway.
local FRAME = {}

local budget, step, spent = 0, STEP, nil
local ticks_to_clock, deadline_ns = 0, nil
local batch_pause_at_ns, pause_wanted = nil, false
local heavy_kib, crowded_kib, call_heavy_kib = 1 << 40, 1 << 40, 1 << 40

local tick

local function stop(reason)
  spent = spent or reason
  budget = -1
  error(spent, 0)
end

-- Lua collects garbage before it gives up an allocation, but not for the buffers of its string
-- functions: those just fail. So with much on the heap, garbage goes before such a call.
local function make_room()
  if collectgarbage("count") > crowded_kib then
    collectgarbage("collect")
    crowded_kib = max(heavy_kib, collectgarbage("count") + CROWDED_AGAIN_KIB)
  end
end

local function look_closer()
  if step ~= HEAVY_STEP then
    step = HEAVY_STEP
    sethook(tick, "", HEAVY_STEP)
  end
end

local function read_clock()
  local now = now_ns()
  if not batch_pause_at_ns then
    batch_pause_at_ns = now + pause_after_ns
  elseif now > batch_pause_at_ns then
    pause_wanted = true
  end
  if not deadline_ns then
    deadline_ns = now + time_max_ns
  elseif now > deadline_ns then
    budget = -1
    spent = spent or OUT_OF_TIME
  end
end

function tick()
  budget = budget - step
  ticks_to_clock = ticks_to_clock - 1
  if collectgarbage("count") > call_heavy_kib then
    look_closer()
    read_clock()
  elseif ticks_to_clock < 0 then
    read_clock()
  end
  if budget < 0 then
    -- Between the end of a script's call and the next `begin`, the hook may fire in our own code.
    local _, frame = getlocal(2, 1)
    if frame ~= FRAME then
      stop(OUT_OF_INSTRUCTIONS)
    end
  end
end

-- Ends the script if `work` (in instructions) is more than it has left.
local function charge(work)
  budget = budget - work
  if not (budget >= 0) then   -- so that NaN stops as well
    stop(OUT_OF_INSTRUCTIONS)
  end
end

-- Gives a string that a wrapped function made to the script.
local function hand_over(text)
  local bytes = #text
  charge(bytes >> 4)
  if bytes > HEAVY_STRING_BYTES then
    look_closer()
  end
  return text
end

-- Near the end of the C stack the hook itself cannot be called: Lua raises "C stack overflow" in its
-- place, and a script that catches that at the same depth would never be counted. So every caught
-- error counts as the hook that may have been lost with it.
local function after_pcall(ok, ...)
  if spent then
    error(spent, 0)
  elseif ok then
    return true, ...
  end
  local problem = ...
  budget = budget - STEP
  read_clock()
  if budget < 0 then
    stop(OUT_OF_INSTRUCTIONS)
  end
  if problem == MEMORY_ERROR then
    stop(OUT_OF_MEMORY)
  end
  if type(problem) == "userdata" then
    stop(INTERRUPTED)   -- a Python exception, such as Ctrl-C in the clock; scripts get no Python object
  end
  return false, problem
end

local function script_pcall(f, ...)
  return after_pcall(pcall(f, ...))
end

-- A batch is one crossing from Python; a call is one run of the script's function in it.
-- Each takes FRAME first, because a hook may still fire in them for the call that just ended.
local function begin_batch(_frame)
  batch_pause_at_ns, pause_wanted, step = nil, false, STEP
  crowded_kib = heavy_kib
  sethook(tick, "", STEP)
end

local function end_batch(_frame)
  sethook()
end

local function begin_call(_frame)
  budget, spent, deadline_ns, ticks_to_clock = instructions_max, nil, nil, TICKS_UNTIMED
  make_room()
  local kib = collectgarbage("count")
  call_heavy_kib = min(heavy_kib, kib + HEAVY_GROWTH_KIB)
  if kib > heavy_kib then
    look_closer()
  elseif step ~= STEP then
    step = STEP
    sethook(tick, "", STEP)
  end
end

-- Says what ended a call: kind, text. Never runs script code: an error object's __tostring is not asked.
local function explain(_frame, problem)
  if spent == OUT_OF_MEMORY or problem == MEMORY_ERROR then
    return "memory", OUT_OF_MEMORY
  elseif spent then
    return "time", spent
  elseif type(problem) == "string" then
    return "error", trusted.sub(problem, 1, 512)
  elseif type(problem) == "number" then
    return "error", trusted.format("%.14g", problem)
  end
  return "error", "the script raised an error object of type " .. type(problem)
end

-- Called once, when everything that is ours has been loaded.
local function set_baseline()
  -- The last part of a collection is not incremental: 20 us. Three times the live heap between two
  -- of them makes that rarer than one call in a hundred.
  collectgarbage("incremental", 300, 100)
  collectgarbage("collect")
  heavy_kib = collectgarbage("count") + HEAVY_HEAP_KIB
  sethook(tick, "", STEP)   -- the first one makes Lua's own table of hooks
  sethook()
end

trusted.FRAME = FRAME
trusted.sub, trusted.format = string.sub, string.format
trusted.raw_pcall, trusted.pcall = pcall, script_pcall
trusted.charge, trusted.make_room, trusted.hand_over = charge, make_room, hand_over
trusted.instructions_max = instructions_max
trusted.begin_batch, trusted.end_batch, trusted.begin_call = begin_batch, end_batch, begin_call
trusted.explain, trusted.set_baseline = explain, set_baseline
trusted.pause_wanted = function(_frame) return pause_wanted end
