//! Commands of places. A place is a member of a sorted set whose score is its geohash (`geohash`).

use engine::{Entry, KeyTransaction, Kind, ScoreBound, event_class};
use stdx::memory;

use crate::call::{Call, Done, Result};
use crate::commands::lookup_as;
use crate::commands::members::store_built;
use crate::commands::sorted_set::{AddOptions, add_scores};
use crate::errors;
use crate::float;
use crate::geohash;
use crate::geohash::{Cell, Extent, LATITUDE_MAX, LONGITUDE_MAX, Place, Shape};
use crate::reply::Reply;

impl<'a> Call<'a> {
    /// Returns two arguments as a place. Replies with Redis' error if they are none.
    fn place(&mut self, at: usize) -> Option<Place> {
        let longitude = self.double(at, errors::NOT_FLOAT)?;
        let latitude = self.double(at + 1, errors::NOT_FLOAT)?;
        if longitude.abs() > LONGITUDE_MAX || latitude.abs() > LATITUDE_MAX {
            self.reply.error(&format!("ERR invalid longitude,latitude pair {},{}", fixed(longitude), fixed(latitude)));
            return None;
        }
        Some(Place { longitude, latitude })
    }

    /// Returns the meters of the unit that an argument names.
    fn unit(&mut self, at: usize) -> Option<f64> {
        let unit = match self.args[at].to_ascii_lowercase().as_slice() {
            b"m" => Some(1.0),
            b"km" => Some(1000.0),
            b"ft" => Some(0.3048),
            b"mi" => Some(1609.34),
            _ => None,
        };
        if unit.is_none() {
            self.reply.error("ERR unsupported unit provided. please use M, KM, FT, MI");
        }
        unit
    }

    /// Returns two arguments as a radius and the meters of its unit.
    fn radius(&mut self, at: usize) -> Option<(Extent, f64)> {
        let radius = self.double(at, "ERR need numeric radius")?;
        if radius < 0.0 {
            self.reply.error("ERR radius cannot be negative");
            return None;
        }
        Some((Extent::Radius(radius), self.unit(at + 1)?))
    }

    /// Returns three arguments as a box and the meters of its unit.
    fn rectangle(&mut self, at: usize) -> Option<(Extent, f64)> {
        let width = self.double(at, "ERR need numeric width")?;
        let height = self.double(at + 1, "ERR need numeric height")?;
        if width < 0.0 || height < 0.0 {
            self.reply.error("ERR height or width cannot be negative");
            return None;
        }
        Some((Extent::Box { width, height }, self.unit(at + 2)?))
    }
}

/// Returns "%f" of a number.
fn fixed(value: f64) -> String {
    if value.is_infinite() { (if value > 0.0 { "inf" } else { "-inf" }).to_owned() } else { format!("{value:.6}") }
}

fn reply_distance(reply: &mut Reply<'_>, distance: f64) {
    reply.bulk(format!("{distance:.4}").as_bytes());
}

fn reply_place(reply: &mut Reply<'_>, place: Place) {
    reply.array(2);
    for degrees in [place.longitude, place.latitude] {
        let mut text = Vec::new();
        float::print_fixed(&mut text, degrees);
        reply.number(&text);
    }
}

pub fn geoadd(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let (mut options, mut from) = (AddOptions::default(), 2);
    while from < call.args.len() {
        match call.args[from].to_ascii_lowercase().as_slice() {
            b"nx" => options.nx = true,
            b"xx" => options.xx = true,
            b"ch" => options.ch = true,
            _ => break,
        }
        from += 1;
    }
    let given = call.args.len() - from;
    if given == 0 || !given.is_multiple_of(3) || options.nx && options.xx {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    let (mut scores, mut members) = (Vec::new(), Vec::new());
    for at in (from..call.args.len()).step_by(3) {
        let Some(place) = call.place(at) else { return Ok(()) };
        scores.push(geohash::score(place));
        members.push(call.args[at + 2]);
    }
    add_scores(txn, call, options, &scores, &members)
}

/// Looks up places. Calls `show` with each, `None` if there is no such member.
fn each_place(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    show: impl Fn(&mut Reply<'_>, Option<Place>),
) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::ZSet)? else { return Ok(()) };
    call.reply.array(call.args.len() - 2);
    for member in &call.args[2..] {
        let score = found.as_ref().map(|entry| txn.score(entry, member)).transpose()?.flatten();
        show(&mut call.reply, score.map(geohash::place));
    }
    Ok(())
}

pub fn geohash(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    each_place(txn, call, |reply, place| match place {
        Some(place) => reply.bulk(&geohash::text(place)),
        None => reply.null(),
    })
}

pub fn geopos(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    each_place(txn, call, |reply, place| match place {
        Some(place) => reply_place(reply, place),
        None => reply.null_array(),
    })
}

pub fn geodist(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let mut unit = 1.0;
    match call.args.len() {
        4 => {}
        5 => {
            let Some(given) = call.unit(4) else { return Ok(()) };
            unit = given;
        }
        _ => {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
    }
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::ZSet)? else { return Ok(()) };
    let score = |member: &[u8]| found.as_ref().map(|entry| txn.score(entry, member)).transpose();
    match score(call.args[2])?.flatten().zip(score(call.args[3])?.flatten()) {
        Some((one, other)) => {
            let distance = geohash::distance(geohash::place(one), geohash::place(other));
            reply_distance(&mut call.reply, distance / unit);
        }
        None => call.reply.null(),
    }
    Ok(())
}

/// How a command of searches names its center and its options.
#[derive(Clone, Copy, PartialEq)]
enum SearchForm {
    /// GEORADIUS: a place and a radius first.
    Coordinates,
    /// GEORADIUSBYMEMBER: a member and a radius first.
    Member,
    /// GEOSEARCH: all in options.
    Search,
}

/// A parsed search.
struct Search<'a> {
    center: Option<Place>,
    extent: Option<(Extent, f64)>,
    from_member: bool,
    from_place: bool,
    with_distance: bool,
    with_hash: bool,
    with_place: bool,
    /// Whether the nearest come first, if they are sorted.
    is_ascending: Option<bool>,
    any: bool,
    /// Most places; 0 for all.
    count: u64,
    target: Option<&'a [u8]>,
    /// The scores of the target are distances.
    stores_distance: bool,
}

/// A place that a search has found.
struct Hit {
    distance: f64,
    score: f64,
    member: Vec<u8>,
}

fn member_place(txn: &KeyTransaction<'_>, call: &mut Call<'_>, entry: &Entry, member: &[u8]) -> Done<Option<Place>> {
    let score = txn.score(entry, member)?;
    if score.is_none() {
        call.reply.error("ERR could not decode requested zset member");
    }
    Ok(score.map(geohash::place))
}

impl<'a> Search<'a> {
    /// Parses a request. Returns None after an error reply.
    fn parse(
        txn: &KeyTransaction<'_>,
        call: &mut Call<'a>,
        form: SearchForm,
        found: Option<&Entry>,
    ) -> Done<Option<Search<'a>>> {
        let mut search = Search {
            center: None,
            extent: None,
            from_member: false,
            from_place: false,
            with_distance: false,
            with_hash: false,
            with_place: false,
            is_ascending: None,
            any: false,
            count: 0,
            target: None,
            stores_distance: false,
        };
        let is_store = call.command.name == "geosearchstore";
        let options = match form {
            SearchForm::Coordinates => {
                search.center = call.place(2);
                if search.center.is_some() {
                    search.extent = call.radius(4);
                }
                if search.extent.is_none() {
                    return Ok(None);
                }
                6
            }
            SearchForm::Member => {
                if let Some(entry) = found {
                    search.center = member_place(txn, call, entry, call.args[2])?;
                    if search.center.is_some() {
                        search.extent = call.radius(3);
                    }
                    if search.extent.is_none() {
                        return Ok(None);
                    }
                }
                5
            }
            SearchForm::Search if is_store => {
                search.target = Some(call.args[1]);
                3
            }
            SearchForm::Search => 2,
        };
        if search.parse_options(txn, call, (form, is_store), found, options)?.is_none() {
            return Ok(None);
        }
        Ok(search.check(call, form, is_store).map(|()| search))
    }

    fn parse_options(
        &mut self,
        txn: &KeyTransaction<'_>,
        call: &mut Call<'a>,
        (form, is_store): (SearchForm, bool),
        found: Option<&Entry>,
        mut at: usize,
    ) -> Done<Option<()>> {
        let may_store = form != SearchForm::Search && !call.command.name.ends_with("_ro");
        let is_search = form == SearchForm::Search;
        while at < call.args.len() {
            let behind = call.args.len() - at - 1;
            match call.args[at].to_ascii_lowercase().as_slice() {
                b"withdist" => self.with_distance = true,
                b"withhash" => self.with_hash = true,
                b"withcoord" => self.with_place = true,
                b"any" => self.any = true,
                b"asc" => self.is_ascending = Some(true),
                b"desc" => self.is_ascending = Some(false),
                b"count" if behind >= 1 => {
                    let Some(count) = call.integer(at + 1) else { return Ok(None) };
                    if count <= 0 {
                        call.reply.error("ERR COUNT must be > 0");
                        return Ok(None);
                    }
                    self.count = count as u64;
                    at += 1;
                }
                word @ (b"store" | b"storedist") if may_store && behind >= 1 => {
                    self.stores_distance = word == b"storedist";
                    self.target = Some(call.args[at + 1]);
                    at += 1;
                }
                b"storedist" if is_store => self.stores_distance = true,
                b"frommember" if is_search && behind >= 1 && !self.from_place => {
                    if let Some(entry) = found {
                        self.center = member_place(txn, call, entry, call.args[at + 1])?;
                        if self.center.is_none() {
                            return Ok(None);
                        }
                    }
                    self.from_member = true;
                    at += 1;
                }
                b"fromlonlat" if is_search && behind >= 2 && !self.from_member => {
                    self.center = call.place(at + 1);
                    if self.center.is_none() {
                        return Ok(None);
                    }
                    self.from_place = true;
                    at += 2;
                }
                b"byradius" if is_search && behind >= 2 && !matches!(self.extent, Some((Extent::Box { .. }, _))) => {
                    self.extent = call.radius(at + 1);
                    if self.extent.is_none() {
                        return Ok(None);
                    }
                    at += 2;
                }
                b"bybox" if is_search && behind >= 3 && !matches!(self.extent, Some((Extent::Radius(_), _))) => {
                    self.extent = call.rectangle(at + 1);
                    if self.extent.is_none() {
                        return Ok(None);
                    }
                    at += 3;
                }
                _ => {
                    call.reply.error(errors::SYNTAX);
                    return Ok(None);
                }
            }
            at += 1;
        }
        Ok(Some(()))
    }

    /// Checks that the options fit each other. Returns None after an error reply.
    fn check(&self, call: &mut Call<'_>, form: SearchForm, is_store: bool) -> Option<()> {
        let shown = String::from_utf8_lossy(call.args[0]).into_owned();
        let error = if self.target.is_some() && (self.with_distance || self.with_hash || self.with_place) {
            let what = if is_store { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            format!("ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
        } else if form == SearchForm::Search && !self.from_member && !self.from_place {
            format!("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {shown}")
        } else if form == SearchForm::Search && self.extent.is_none() {
            format!("ERR exactly one of BYRADIUS and BYBOX can be specified for {shown}")
        } else if self.any && self.count == 0 {
            "ERR the ANY argument requires COUNT argument".to_owned()
        } else {
            return Some(());
        };
        call.reply.error(&error);
        None
    }

    /// Finds the places, in the order of the reply.
    fn hits(&self, txn: &KeyTransaction<'_>, entry: &Entry, shape: &Shape) -> Done<Vec<Hit>> {
        let limit = if self.any { self.count as usize } else { usize::MAX };
        let (mut hits, mut last) = (GatheredHits::default(), None);
        for (at, cell) in shape.cells().into_iter().enumerate() {
            // With a large radius neighbours may be the same cell. As in Redis, only those behind the center are compared.
            if at > 1 && last == Some(cell) {
                continue;
            }
            hits.search(txn, entry, shape, cell, limit)?;
            last = Some(cell);
            if hits.found.len() >= limit {
                break;
            }
        }
        let mut hits = hits.found;
        let sorted = self.is_ascending.or((self.count > 0 && !self.any).then_some(true));
        if let Some(is_ascending) = sorted {
            let order = |one: &Hit, other: &Hit| one.distance.total_cmp(&other.distance);
            if is_ascending {
                hits.sort_by(order);
            } else {
                hits.sort_by(|one, other| order(other, one));
            }
        }
        if self.count > 0 {
            hits.truncate(usize::try_from(self.count).unwrap_or(usize::MAX));
        }
        Ok(hits)
    }
}

/// Places found so far, and the memory that they are accounted with.
#[derive(Default)]
struct GatheredHits {
    found: Vec<Hit>,
    bytes: usize,
    claimed: usize,
    claim: Option<memory::Claim>,
}

impl GatheredHits {
    /// Adds the places of a cell that the search includes, until there are `limit`.
    fn search(&mut self, txn: &KeyTransaction<'_>, entry: &Entry, shape: &Shape, cell: Cell, limit: usize) -> Result {
        let end = cell.end() as f64;
        let first = txn.rank(entry, &ScoreBound::Score { score: cell.score() as f64, is_after: false })?;
        if first >= entry.count()? {
            return Ok(());
        }
        let mut walk = txn.sorted(entry, first, false)?;
        while self.found.len() < limit
            && let Some((score, member)) = walk.next(txn)?
            && score < end
        {
            if let Some(distance) = shape.distance(geohash::place(score)) {
                self.found.push(Hit { distance, score, member: member.to_vec() });
                self.account(member.len() + size_of::<Hit>())?;
            }
        }
        Ok(())
    }

    fn account(&mut self, bytes: usize) -> Result {
        const STEP: usize = 1 << 20;
        self.bytes += bytes;
        if self.bytes > self.claimed + STEP {
            self.claim = None;
            self.claim = Some(memory::claim(self.bytes * 2).map_err(engine::Error::OutOfMemory)?);
            self.claimed = self.bytes * 2;
        }
        Ok(())
    }
}

fn search(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, form: SearchForm, key: usize) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[key], Kind::ZSet)? else { return Ok(()) };
    let Some(search) = Search::parse(txn, call, form, found.as_ref())? else { return Ok(()) };
    let hits = match (&found, search.center, search.extent) {
        (Some(entry), Some(center), Some((extent, unit))) => {
            let shape = Shape { center, extent, unit };
            (search.hits(txn, entry, &shape)?, unit)
        }
        // Without a key there is nothing to find.
        _ => (Vec::new(), 1.0),
    };
    match search.target {
        Some(target) => store_hits(txn, call, (target, search.stores_distance), hits),
        None => reply_hits(call, &search, hits),
    }
}

fn store_hits(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    (target, stores_distance): (&[u8], bool),
    (hits, unit): (Vec<Hit>, f64),
) -> Result {
    let mut build = txn.build(call.db, target, Kind::ZSet, call.limits.zset())?;
    for hit in &hits {
        let score = if stores_distance { hit.distance / unit } else { hit.score };
        build.put(&hit.member, &score.to_le_bytes())?;
    }
    let event = if call.command.name == "geosearchstore" { "geosearchstore" } else { "georadiusstore" };
    store_built(txn, call, target, build, (event_class::SORTED_SET, event))
}

fn reply_hits(call: &mut Call<'_>, search: &Search<'_>, (hits, unit): (Vec<Hit>, f64)) -> Result {
    let details = [search.with_distance, search.with_hash, search.with_place].iter().filter(|with| **with).count();
    call.reply.array(hits.len());
    for hit in hits {
        if details > 0 {
            call.reply.array(details + 1);
        }
        call.bulk_item(&hit.member)?;
        if search.with_distance {
            reply_distance(&mut call.reply, hit.distance / unit);
        }
        if search.with_hash {
            call.reply.integer(geohash::as_signed(hit.score));
        }
        if search.with_place {
            reply_place(&mut call.reply, geohash::place(hit.score));
        }
    }
    Ok(())
}

pub fn georadius(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    search(txn, call, SearchForm::Coordinates, 1)
}

pub fn georadiusbymember(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    search(txn, call, SearchForm::Member, 1)
}

pub fn geosearch(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    search(txn, call, SearchForm::Search, 1)
}

pub fn geosearchstore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    search(txn, call, SearchForm::Search, 2)
}
