//! Geohashes: coordinates as numbers whose order keeps near places near, and the areas that cover a search.
//!
//! Redis keeps a place as the score of a member: 26 bits of latitude and 26 of longitude, interleaved. Every operation here follows Redis' order of floating
//! point operations, because the replies must agree to the last digit.

/// Bits of each coordinate in a score.
pub const STEP_MAX: u32 = 26;
pub const LONGITUDE_MAX: f64 = 180.0;
/// The limit of the Mercator projection.
pub const LATITUDE_MAX: f64 = 85.05112878;
/// Earth's quadratic mean radius for WGS-84.
const EARTH_RADIUS_M: f64 = 6372797.560856;
const MERCATOR_MAX: f64 = 20037726.37;
const DEGREE: f64 = std::f64::consts::PI / 180.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    pub longitude: f64,
    pub latitude: f64,
}

/// A cell of the grid with `step` bits of each coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub bits: u64,
    pub step: u32,
}

/// The bounds of a cell in degrees.
struct Area {
    longitude: (f64, f64),
    latitude: (f64, f64),
}

/// A search around a place, in meters.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub center: Place,
    pub extent: Extent,
    /// Meters of the unit in which the extent was given.
    pub unit: f64,
}

/// The extent of a search, in its unit.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    Radius(f64),
    Box { width: f64, height: f64 },
}

impl Cell {
    /// Returns the cell of a place. Latitudes are cut at `latitude_max`, which 90 gives the standard geohash.
    fn of(place: Place, step: u32, latitude_max: f64) -> Cell {
        let latitude = (place.latitude + latitude_max) / (latitude_max + latitude_max);
        let longitude = (place.longitude + LONGITUDE_MAX) / (LONGITUDE_MAX + LONGITUDE_MAX);
        let scale = (1u64 << step) as f64;
        Cell { bits: interleave((latitude * scale) as u32, (longitude * scale) as u32), step }
    }

    /// Returns the cell's lowest score.
    pub fn score(&self) -> u64 {
        self.bits << (2 * (STEP_MAX - self.step))
    }

    /// Returns the first score behind the cell.
    pub fn end(&self) -> u64 {
        Cell { bits: self.bits + 1, ..*self }.score()
    }

    fn area(&self) -> Area {
        let (latitude, longitude) = deinterleave(self.bits);
        let scale = (1u64 << self.step) as f64;
        let bounds = |index: u32, max: f64| {
            let span = max - -max;
            (-max + (f64::from(index) / scale) * span, -max + (f64::from(index.wrapping_add(1)) / scale) * span)
        };
        Area { longitude: bounds(longitude, LONGITUDE_MAX), latitude: bounds(latitude, LATITUDE_MAX) }
    }

    /// Returns the cell so many cells to the east (-1: to the west) and to the north.
    fn neighbour(&self, east: i32, north: i32) -> Cell {
        const EAST: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        let unused = 64 - self.step * 2;
        let moved = |own: u64, others: u64, by: i32, mask: u64| match by {
            0 => own,
            1.. => own.wrapping_add(others + 1) & mask,
            _ => (own | others).wrapping_sub(others + 1) & mask,
        };
        let (east_mask, north_mask) = (EAST >> unused, !EAST >> unused);
        let x = moved(self.bits & EAST, north_mask, east, east_mask);
        let y = moved(self.bits & !EAST, east_mask, north, north_mask);
        Cell { bits: x | y, ..*self }
    }
}

/// Puts the bits of `even` on the even places and those of `odd` between them.
fn interleave(even: u32, odd: u32) -> u64 {
    spread(even) | spread(odd) << 1
}

fn spread(value: u32) -> u64 {
    let mut spread = u64::from(value);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        spread = (spread | spread << shift) & mask;
    }
    spread
}

fn deinterleave(bits: u64) -> (u32, u32) {
    let gather = |bits: u64| {
        let mut value = bits & 0x5555_5555_5555_5555;
        for (shift, mask) in [
            (1, 0x3333_3333_3333_3333),
            (2, 0x0f0f_0f0f_0f0f_0f0f),
            (4, 0x00ff_00ff_00ff_00ff),
            (8, 0x0000_ffff_0000_ffff),
            (16, 0x0000_0000_ffff_ffff),
        ] {
            value = (value | value >> shift) & mask;
        }
        value as u32
    };
    (gather(bits), gather(bits >> 1))
}

/// Returns the score that stores a place.
pub fn score(place: Place) -> f64 {
    Cell::of(place, STEP_MAX, LATITUDE_MAX).score() as f64
}

/// Returns the middle of the cell that a score names. Scores that are no places give some place, as in Redis.
pub fn place(score: f64) -> Place {
    let area = Cell { bits: as_unsigned(score), step: STEP_MAX }.area();
    let middle = |(low, high): (f64, f64), max: f64| ((low + high) / 2.0).clamp(-max, max);
    Place { longitude: middle(area.longitude, LONGITUDE_MAX), latitude: middle(area.latitude, LATITUDE_MAX) }
}

/// Converts as C does on x86-64, where a value out of range is not refused.
pub fn as_unsigned(score: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if score >= HALF { (as_signed(score - HALF) as u64) ^ (1 << 63) } else { as_signed(score) as u64 }
}

/// Converts as C does on x86-64: out of range gives the least number.
pub fn as_signed(score: f64) -> i64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if (-HALF..HALF).contains(&score) { score as i64 } else { i64::MIN }
}

/// Returns the standard geohash of a place, eleven letters of which the last is always `0`.
pub fn text(place: Place) -> [u8; 11] {
    const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    const BITS: usize = 2 * STEP_MAX as usize;
    let bits = Cell::of(place, STEP_MAX, 90.0).bits;
    let mut text = [LETTERS[0]; 11];
    for (at, letter) in text.iter_mut().take(BITS / 5).enumerate() {
        *letter = LETTERS[(bits >> (BITS - (at + 1) * 5)) as usize & 31];
    }
    text
}

/// Returns the distance of two places in meters, by the haversine formula. Without a difference of longitudes Redis uses a shorter one, which rounds otherwise.
pub fn distance(one: Place, other: Place) -> f64 {
    let (longitude_1, longitude_2) = (one.longitude * DEGREE, other.longitude * DEGREE);
    let v = ((longitude_2 - longitude_1) / 2.0).sin();
    if v == 0.0 {
        return latitude_distance(one.latitude, other.latitude);
    }
    let (latitude_1, latitude_2) = (one.latitude * DEGREE, other.latitude * DEGREE);
    let u = ((latitude_2 - latitude_1) / 2.0).sin();
    2.0 * EARTH_RADIUS_M * (u * u + latitude_1.cos() * latitude_2.cos() * v * v).sqrt().asin()
}

/// Returns the distance of two latitudes in meters.
fn latitude_distance(one: f64, other: f64) -> f64 {
    EARTH_RADIUS_M * (one * DEGREE - other * DEGREE).abs()
}

impl Shape {
    /// Returns the distance of a place from the center in meters, if the search includes it.
    pub fn distance(&self, found: Place) -> Option<f64> {
        match self.extent {
            Extent::Radius(radius) => {
                let distance = distance(self.center, found);
                (distance <= radius * self.unit).then_some(distance)
            }
            Extent::Box { width, height } => {
                if latitude_distance(found.latitude, self.center.latitude) > height * self.unit / 2.0 {
                    return None;
                }
                let beside = Place { latitude: found.latitude, ..self.center };
                if distance(found, beside) > width * self.unit / 2.0 {
                    return None;
                }
                Some(distance(self.center, found))
            }
        }
    }

    /// Returns the cells that cover the search: that of the center, and those of its eight neighbours that are needed, in Redis' order. They may repeat.
    pub fn cells(&self) -> Vec<Cell> {
        let (half_width, half_height, radius) = match self.extent {
            Extent::Radius(radius) => (radius, radius, radius),
            Extent::Box { width, height } => {
                let (half_width, half_height) = (width / 2.0, height / 2.0);
                (half_width, half_height, (half_width * half_width + half_height * half_height).sqrt())
            }
        };
        let Place { longitude, latitude } = self.center;
        let (height, width) = (self.unit * half_height, self.unit * half_width);
        let latitude_delta = height / EARTH_RADIUS_M / DEGREE;
        let longitude_delta = |latitude: f64| width / EARTH_RADIUS_M / (latitude * DEGREE).cos() / DEGREE;
        let longitude_delta =
            longitude_delta(if latitude < 0.0 { latitude - latitude_delta } else { latitude + latitude_delta });
        let (west, east) = (longitude - longitude_delta, longitude + longitude_delta);
        let (south, north) = (latitude - latitude_delta, latitude + latitude_delta);

        let mut step = step_of_radius(radius * self.unit, latitude);
        let mut cell = Cell::of(self.center, step, LATITUDE_MAX);
        // Near the edge of its cell, a search may reach beyond the neighbours.
        let is_short = cell.neighbour(0, 1).area().latitude.1 < north
            || cell.neighbour(0, -1).area().latitude.0 > south
            || cell.neighbour(1, 0).area().longitude.1 < east
            || cell.neighbour(-1, 0).area().longitude.0 > west;
        if step > 1 && is_short {
            step -= 1;
            cell = Cell::of(self.center, step, LATITUDE_MAX);
        }
        let area = cell.area();
        let is_needed = |to_east: i32, to_north: i32| {
            let beyond = |by: i32, (low, high): (f64, f64), least: f64, most: f64| match by {
                0 => true,
                1.. => high <= most,
                _ => low >= least,
            };
            step < 2 || beyond(to_east, area.longitude, west, east) && beyond(to_north, area.latitude, south, north)
        };
        const AROUND: [(i32, i32); 9] = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let needed = AROUND.into_iter().filter(|(east, north)| is_needed(*east, *north));
        needed.map(|(east, north)| cell.neighbour(east, north)).collect()
    }
}

/// Returns how many bits cells have that are about as large as a search.
fn step_of_radius(mut radius_m: f64, latitude: f64) -> u32 {
    if radius_m == 0.0 {
        return STEP_MAX;
    }
    let mut step = 1i32;
    while radius_m < MERCATOR_MAX {
        radius_m *= 2.0;
        step += 1;
    }
    // Cells are wider towards the poles.
    step -= 2 + i32::from(latitude.abs() > 66.0) + i32::from(latitude.abs() > 80.0);
    step.clamp(1, STEP_MAX as i32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Place = Place { longitude: 13.361389, latitude: 38.115556 };
    const CATANIA: Place = Place { longitude: 15.087269, latitude: 37.502669 };

    #[test]
    fn places_have_the_scores_and_texts_of_redis() {
        assert_eq!(score(PALERMO), 3479099956230698.0);
        assert_eq!(score(CATANIA), 3479447370796909.0);
        let stored = place(3479099956230698.0);
        assert_eq!(
            format!("{:.17} {:.17}", stored.longitude, stored.latitude),
            "13.36138933897018433 38.11555639549629859"
        );
        assert_eq!(&text(stored), b"sqc8b49rny0");
        assert_eq!(format!("{:.4}", distance(stored, place(score(CATANIA)))), "166274.1516");
    }

    #[test]
    fn neighbours_are_those_of_the_grid_and_wrap_at_its_edges() {
        let cell = Cell { bits: interleave(3, 5), step: 3 };
        for (east, north) in [(1, 0), (-1, 0), (0, 1), (0, -1), (1, -1)] {
            let expected = interleave((3 + north) as u32, (5 + east) as u32);
            assert_eq!(cell.neighbour(east, north), Cell { bits: expected, step: 3 });
        }
        let corner = Cell { bits: interleave(7, 7), step: 3 };
        assert_eq!(corner.neighbour(1, 1).bits, 0);
        assert_eq!(Cell { bits: 0, step: 3 }.neighbour(-1, -1).bits, interleave(7, 7));
        assert_eq!(deinterleave(interleave(0xdead_beef, 0x1234_5678)), (0xdead_beef, 0x1234_5678));
    }

    #[test]
    fn every_place_of_a_search_is_in_one_of_its_cells() {
        let mut prng = stdx::prng::Prng::new(5);
        let mut draw = |max: f64| (prng.below(1 << 40) as f64 / (1u64 << 39) as f64 - 1.0) * max;
        let mut inside = 0;
        for _ in 0..20_000 {
            let center = Place { longitude: draw(170.0), latitude: draw(75.0) };
            let size = draw(200_000.0).abs();
            let extent = if draw(1.0) > 0.0 {
                Extent::Radius(size)
            } else {
                Extent::Box { width: size, height: draw(300_000.0).abs() }
            };
            let shape = Shape { center, extent, unit: 1.0 };
            let near = Place { longitude: center.longitude + draw(3.0), latitude: center.latitude + draw(2.0) };
            let stored = score(near);
            if shape.distance(place(stored)).is_some() {
                inside += 1;
                assert!(
                    shape.cells().iter().any(|cell| (cell.score()..cell.end()).contains(&(stored as u64))),
                    "{shape:?}"
                );
            }
        }
        assert!(inside > 1000, "{inside}");
    }

    #[test]
    fn numbers_out_of_range_are_converted_as_by_the_processor() {
        assert_eq!(
            [as_unsigned(-1.0), as_unsigned(1e19), as_unsigned(1e30)],
            [u64::MAX, 10_000_000_000_000_000_000, 0]
        );
        assert_eq!([as_unsigned(f64::NEG_INFINITY), as_signed(f64::INFINITY) as u64], [1 << 63, 1 << 63]);
    }
}
