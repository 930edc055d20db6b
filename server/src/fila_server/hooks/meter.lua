-- What a script may spend, and how it is stopped. Loaded first; next: libraries.lua.
--
-- Script code runs in a thread (a coroutine) of its own, because a hook belongs to one: where one is set, Lua
-- asks for it at every instruction, which would cost our own code more than the script itself.
--
-- Three things end a call: its instructions, its time, its memory. Instructions are counted by a
-- count hook; C functions whose work depends on their arguments are wrapped (libraries.lua) and
-- charge what they may take before they start, because no hook runs inside C. Memory is capped by
-- the allocator. Once something is spent, `spent` stays set until the next call begins, and every
-- way a script has to catch an error (there is one, pcall) raises it again.
local trusted, now_ns, instructions_max, time_max_ns, pause_after_ns, look_every = ...

local debug, error, pcall, type, collectgarbage = debug, error, pcall, type, collectgarbage
local sethook, getlocal, min, max = debug.sethook, debug.getlocal, math.min, math.max
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield

local STEP = look_every      -- instructions between two looks: at 100, 0.25 us each, so about 5 % of a script
local TICKS_UNTIMED = 5      -- of a call, before the clock is read at every look: most calls end by then
-- Single instructions get slow only on long strings (comparing, hashing, joining: up to some ms).
-- So once there may be such strings, looks are ten times closer, each with the clock.
local HEAVY_STEP = min(10, STEP)
local HEAVY_STRING_BYTES = 16 * 1024
local HEAVY_HEAP_KIB = 256   -- above the heap the environment itself takes; garbage stays below that
local HEAVY_GROWTH_KIB = 32  -- within one call
-- Between two collections of a heap that is full of what a script keeps: 40 to 80 us each, so that
-- they must be rarer than one call in a hundred, and a call makes about 1 KiB of garbage.
local CROWDED_AGAIN_KIB = 160

local MEMORY_ERROR = "not enough memory"   -- Lua's own text, always this very string
local OUT_OF_INSTRUCTIONS = "the script took more than " .. instructions_max .. " instructions"
local OUT_OF_TIME = "the script took more than " .. time_max_ns // 1000000 .. " ms"
local INTERRUPTED = "the call was interrupted"
local OUT_OF_MEMORY = "the script needs more memory than a hook may use"

-- The first local of a function that belongs to us and must not be stopped halfway.
local FRAME = {}

local thread = nil           -- the script's; nil after an error ended it

local budget, step, spent = 0, STEP, nil
local ticks_to_clock, deadline_ns = 0, nil
local ticks_untimed = TICKS_UNTIMED   -- 0 for good once the script had a long string: it may have kept it
local batch_pause_at_ns, pause_wanted = nil, false
local heavy_kib, crowded_kib, call_heavy_kib = 1 << 40, 1 << 40, 1 << 40
-- What crowded_kib is when a call begins. A script that keeps much between calls would pay for a whole
-- collection at each of them, if it were not for what the last one found to be kept.
local crowded_between_kib = 1 << 40
local heap_kib, began_kib = 0, 0   -- at the last look, and when the call began
local full_kib, given_kib = 1 << 40, 0   -- what a script may keep, and what this crossing brought

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
    sethook(thread, tick, "", HEAVY_STEP)
    step = HEAVY_STEP
  end
end

local function look_for_growth(before_kib)
  if heap_kib > before_kib + HEAVY_GROWTH_KIB then
    ticks_untimed = 0
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
  heap_kib = collectgarbage("count")
  if heap_kib > call_heavy_kib then
    look_for_growth(began_kib)
    look_closer()
    read_clock()
  elseif ticks_to_clock < 0 then
    read_clock()
  end
  if budget < 0 then
    -- After the end of a call the hook may fire in `serve`.
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
    heap_kib, ticks_untimed = heap_kib + (bytes >> 10), 0
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

local function serve(_frame)
  local f, argument = yield()
  while true do
    local result = f(argument)
    f, argument = nil, nil   -- so that a message is garbage once it is answered
    f, argument = yield(result)
  end
end

-- Calls f(argument) in the script's thread, within the limits: true and its first result, or false and the problem.
local function limited(f, argument)
  local ok, outcome = resume(thread, f, argument)
  if not ok then
    thread = nil
  end
  return ok, outcome
end

-- Fails the call that keeps too much for what we do after it, or the next message would fail in its place.
-- Not counting `own_bytes`, which we keep.
local function check_room(own_bytes)
  if heap_kib > full_kib then
    collectgarbage("collect")
    heap_kib = collectgarbage("count")
    if heap_kib - given_kib - (own_bytes >> 10) > full_kib then
      error(MEMORY_ERROR, 0)
    end
  end
end

-- A batch is one crossing from Python, with so many bytes; a call is one run of the script's function in it.
local function begin_batch(given_bytes)
  batch_pause_at_ns, pause_wanted = nil, false
  local last_kib = heap_kib
  heap_kib, given_kib = collectgarbage("count"), given_bytes >> 10
  look_for_growth(last_kib + given_kib)
  crowded_between_kib = max(heavy_kib, min(crowded_between_kib, heap_kib + CROWDED_AGAIN_KIB))
end

-- Returns true when the batch has taken its time, so that no further call should begin in it.
local function begin_call()
  budget, spent, deadline_ns, ticks_to_clock = instructions_max, nil, nil, ticks_untimed
  -- The heap as of the last look, at most STEP instructions ago: asking again would cost each call 5 %.
  crowded_kib = crowded_between_kib
  if heap_kib > crowded_kib then
    -- Weak keys can make a collection take a hundred times as long: that is the script's time too.
    read_clock()
    make_room()
    read_clock()
    crowded_between_kib, heap_kib = crowded_kib, collectgarbage("count")
  end
  if not thread then
    thread = create(serve)
    resume(thread, FRAME)
    step = nil
  end
  began_kib, call_heavy_kib = heap_kib, min(heavy_kib, heap_kib + HEAVY_GROWTH_KIB)
  if heap_kib > heavy_kib then
    look_closer()
  elseif step ~= STEP then
    sethook(thread, tick, "", STEP)   -- first, for it may lack the memory
    step = STEP
  end
  return pause_wanted
end

-- Says what ended a call: kind, text. Never runs script code: an error object's __tostring is not asked.
local function explain(problem)
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

-- Of the last call, as far as it was looked at: exact to `look_every`.
local function instructions_used()
  return instructions_max - budget
end

local function set_kept_max(kib)
  full_kib = kib
end

-- Called once, when everything that is ours has been loaded.
local function set_baseline()
  -- The last part of a collection is not incremental: 20 us. Three times the live heap between two
  -- of them makes that rarer than one call in a hundred.
  collectgarbage("incremental", 300, 100)
  collectgarbage("collect")
  heap_kib = collectgarbage("count")
  heavy_kib = heap_kib + HEAVY_HEAP_KIB
end

trusted.sub, trusted.format = string.sub, string.format
trusted.raw_pcall, trusted.pcall = pcall, script_pcall
trusted.charge, trusted.make_room, trusted.hand_over = charge, make_room, hand_over
trusted.instructions_max = instructions_max
trusted.begin_batch, trusted.begin_call = begin_batch, begin_call
trusted.limited, trusted.check_room = limited, check_room
trusted.explain, trusted.set_baseline, trusted.set_kept_max = explain, set_baseline, set_kept_max
trusted.instructions_used = instructions_used
